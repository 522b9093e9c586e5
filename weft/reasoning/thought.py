"""The result of a strategy: an answer, the tree of threads behind it, and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypedDict

from weft.core.values import Usage
from weft.reasoning.evidence import Evidence


class ThreadState(Enum):
    """The state of a thread; the last four are final."""

    READY = "ready"
    DECODING = "decoding"
    FORKING = "forking"
    WAITING = "waiting"
    JOINING = "joining"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CONTEXT_FULL = "context full"

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self in _ENDS


_ENDS = frozenset(
    (ThreadState.DONE, ThreadState.FAILED, ThreadState.CANCELLED, ThreadState.CONTEXT_FULL)
)


@dataclass(frozen=True, slots=True)
class ThreadSegment:
    """A stretch of a thread's context after its prompt; `text` includes special tokens.

    `forced`: written by the runtime (a header, a join, a repair), not by the model. `role`: its
    purpose. `tokens`: their number, where the client hides the ids; None: one for each id.
    """

    token_ids: tuple[int, ...]
    text: str
    forced: bool = False
    role: str = ""
    tokens: int | None = None

    @property
    def count(self) -> int:
        """The number of tokens."""
        return len(self.token_ids) if self.tokens is None else self.tokens


@dataclass(frozen=True, slots=True)
class ThreadFork:
    """The children that a thread joined, in declared order.

    `meanwhile`: tokens that the thread itself wrote parallel to each of them (empty: none).
    """

    children: tuple[ThreadRecord, ...]
    meanwhile: tuple[int, ...] = ()

    @property
    def critical_path_tokens(self) -> int:
        """Tokens that the longest child adds to the critical path of the thread."""
        own_tokens = self.meanwhile or (0,) * len(self.children)
        pairs = zip(self.children, own_tokens, strict=True)
        return max((max(0, child.critical_path_tokens - own) for child, own in pairs), default=0)


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread and its descendants. `key` names it among its siblings; `role` is its purpose.

    `state` is final, `reason` explains it. `result` is what it returned to its parent.
    """

    id: str
    role: str = "thread"
    key: str = ""
    state: ThreadState = ThreadState.DONE
    reason: str = ""
    prompt_tokens: int = 0
    segments: tuple[ThreadSegment | ThreadFork, ...] = ()
    result: str = ""

    @property
    def text(self) -> str:
        """The text of this thread, by the model and by the runtime, without its children."""
        return "".join(part.text for part in self.segments if isinstance(part, ThreadSegment))

    @property
    def generated_tokens(self) -> int:
        """The number of tokens that the model wrote in this thread itself."""
        own = (part for part in self.segments if isinstance(part, ThreadSegment))
        return sum(part.count for part in own if not part.forced)

    @property
    def forks(self) -> tuple[ThreadFork, ...]:
        """The forks of this thread, in order."""
        return tuple(part for part in self.segments if isinstance(part, ThreadFork))

    @property
    def critical_path_tokens(self) -> int:
        """Generated tokens of this thread and, for each fork, of its longest child."""
        return self.generated_tokens + sum(fork.critical_path_tokens for fork in self.forks)

    def as_json(self) -> dict[str, Any]:
        """The tree as JSON data."""
        return {
            "id": self.id,
            "role": self.role,
            "key": self.key,
            "state": self.state.value,
            "reason": self.reason,
            "prompt_tokens": self.prompt_tokens,
            "segments": [_part_as_json(part) for part in self.segments],
            "result": self.result,
        }


def _part_as_json(part: ThreadSegment | ThreadFork) -> dict[str, Any]:
    if isinstance(part, ThreadFork):
        return {"fork": [child.as_json() for child in part.children]}
    return {
        "text": part.text,
        "tokens": part.count,
        "token_ids": list(part.token_ids),
        "forced": part.forced,
        "role": part.role,
    }


SampleStatus = Literal["finished", "length", "cancelled", "failed"]
Fidelity = Literal["exact", "approximate"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One independent answer. `key`: the answer in canonical form; None: it has none.

    `tokens` were generated for it. `score` is the scorer's, `confidence` the model's own.
    """

    index: int
    text: str
    key: str | None
    tokens: int
    status: SampleStatus
    score: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ThoughtCounts:
    """What a thought cost, in tokens and calls.

    `total_tokens` were generated, `cancelled_tokens` of them in cancelled calls. The critical path
    is the longest chain of generated tokens: a thread's own and, for each fork, its longest child.
    `prefill_extra_tokens` had been generated once and were computed again as the prompt of a join.
    `prompt_tokens` were sent, `cached_tokens` of them were in the server's cache. `threads` ran in
    `forks`; `depth` is that of the deepest fork, `width` that of the widest. Of the total,
    `reasoning_tokens` were thoughts before an answer, and `answer_tokens` the others; None where
    the server did not count a thought and gave no token ids.
    """

    total_tokens: int = 0
    cancelled_tokens: int = 0
    critical_path_tokens: int = 0
    prefill_extra_tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    forks: int = 0
    threads: int = 0
    depth: int = 0
    width: int = 0
    reasoning_tokens: int | None = 0
    answer_tokens: int | None = 0


@dataclass(frozen=True, slots=True)
class Thought:
    """The result of a strategy, with an answer that is not empty (see `make_strategy`).

    `key`: the answer in canonical form, where the strategy compares answers. `fidelity` says
    whether the strategy ran as published; `lost` names what it lost if not. `why`: what ended the
    search, or chose the answer. `evidence`: the sources of markers such as `[3]` in the answer.
    `cut`: the answer, or a part of it, was cut off at its token limit.
    """

    answer: str
    key: str | None = None
    tree: ThreadRecord | None = None
    counts: ThoughtCounts = field(default_factory=ThoughtCounts)
    samples: tuple[Sample, ...] = ()
    fidelity: Fidelity = "exact"
    lost: str = ""
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    cut: bool = False


def tree_counts(root: ThreadRecord, usage: Usage, tokens: int, lost_tokens: int) -> ThoughtCounts:
    """The counts of the tree under `root`: `tokens` generated, `lost_tokens` of them for nothing.

    The root counts as a thread; a fork into a single thread does not count.
    """
    forks = [
        (depth, len(fork.children))
        for depth, thread in _threads(root)
        for fork in thread.forks
        if len(fork.children) > 1
    ]
    return ThoughtCounts(
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
        **split_tokens(usage, tokens),
    )


class _Parts(TypedDict):
    reasoning_tokens: int | None
    answer_tokens: int | None


def split_tokens(usage: Usage, tokens: int) -> _Parts:
    """The two parts of `tokens` generated tokens in `ThoughtCounts`: thoughts, and the rest."""
    if usage.reasoning_tokens is None:
        return {"reasoning_tokens": None, "answer_tokens": None}
    thought = min(usage.reasoning_tokens, tokens)
    return {"reasoning_tokens": thought, "answer_tokens": tokens - thought}


def _threads(root: ThreadRecord, depth: int = 0) -> Iterator[tuple[int, ThreadRecord]]:
    yield depth, root
    for fork in root.forks:
        for child in fork.children:
            yield from _threads(child, depth + 1)


def cut_steps(cut: Mapping[str, int]) -> str:
    """What is lost by steps that were cut off, by name; empty where none was."""
    names = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in cut.items())
    return f"steps were cut off where their tokens were spent: {names}" if names else ""
