"""What a tree of threads cost, from its record and what its calls used. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.values import Usage
from weft.reasoning.thought import Counts
from weft.reasoning.thread.record import ThreadRecord


def tally(root: ThreadRecord, usage: Usage, tokens: int, lost_tokens: int) -> Counts:
    """The counts of the tree under `root`, whose calls generated `tokens`, some for nothing.

    The root is a thread too; a fork into a single thread is none.
    """
    forks = [
        (depth, len(fork.children))
        for depth, thread in _threads(root)
        for fork in thread.forks
        if len(fork.children) > 1
    ]
    return Counts(
        total_tokens=tokens,
        cancelled_tokens=lost_tokens,
        critical_path_tokens=root.critical_path_tokens,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        requests=usage.requests,
        forks=len(forks),
        threads=sum(1 for _ in _threads(root)),
        depth=max((depth + 1 for depth, _ in forks), default=0),
        width=max((children for _, children in forks), default=1),
    )


def _threads(root: ThreadRecord, depth: int = 0) -> Iterator[tuple[int, ThreadRecord]]:
    yield depth, root
    for fork in root.forks:
        for child in fork.children:
            yield from _threads(child, depth + 1)
