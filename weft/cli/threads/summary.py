"""A thought in a few lines: what it cost, why it ended, what it lost. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from weft.cli.text import amount, clean, one_line
from weft.reasoning.thought import Sample, Thought

_MOST_ANSWERS: Final = 8


def summary(strategy: str, thought: Thought) -> Iterator[str]:
    """Lines for people: the cost first."""
    counts = thought.counts
    parts = [
        f"{counts.total_tokens:,} tokens generated",
        f"{counts.critical_path_tokens:,} on the critical path",
        amount(counts.threads, "thread"),
        amount(counts.forks, "fork"),
    ]
    if counts.cancelled_tokens:
        parts.append(f"{counts.cancelled_tokens:,} tokens cancelled")
    if counts.prefill_extra_tokens:
        parts.append(f"{counts.prefill_extra_tokens:,} tokens read again at joins")
    yield f"{clean(strategy)}: {' · '.join(parts)}"
    yield from _votes(thought.samples)
    if thought.why:
        yield f"ended: {one_line(thought.why, 300)}"
    if thought.fidelity == "approximate" or thought.lost:
        yield f"{thought.fidelity}: {one_line(thought.lost or 'not as it was published', 300)}"


def _votes(samples: Sequence[Sample]) -> Iterator[str]:
    """The answers that were compared, and which samples gave each; the most frequent first."""
    if len(samples) < 2:
        return
    by_key: defaultdict[str | None, list[int]] = defaultdict(list)
    for sample in samples:
        by_key[sample.key].append(sample.index)
    answers = sorted(by_key.items(), key=lambda each: (each[0] is None, -len(each[1]), each[1]))
    for key, given in answers[:_MOST_ANSWERS]:
        what = "no answer that can be compared" if key is None else f"answer {key!r}"
        yield one_line(f"{what}: {amount(len(given), 'sample')} ({_listed(given)})", 300)
    if len(answers) > _MOST_ANSWERS:
        yield f"and {len(answers) - _MOST_ANSWERS} more answers"


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_ANSWERS]))
    return f"{shown}, …" if len(numbers) > _MOST_ANSWERS else shown
