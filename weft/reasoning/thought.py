"""What a strategy comes to: an answer, how it came about, and what it cost. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from weft.reasoning.evidence import Evidence
from weft.reasoning.thread.record import ThreadRecord

SampleStatus = Literal["finished", "length", "cancelled", "failed"]
Fidelity = Literal["exact", "approximate"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One independent answer. `key` is its answer in canonical form; None: it has none.

    `tokens` were generated for it. `score` is a scorer's, `confidence` the model's own.
    """

    index: int
    text: str
    key: str | None
    tokens: int
    status: SampleStatus
    score: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What a thought cost, in tokens and calls.

    `total_tokens` were generated, `cancelled_tokens` among them for nothing. The critical path is
    the longest chain of generated tokens: a thread's own, and of each fork its longest child.
    `prefill_extra_tokens` had been generated once and were computed again as the prompt of a join.
    `prompt_tokens` were sent, `cached_tokens` of them found in the server's cache. `forks` were
    made, `threads` run in all; `depth` is that of the deepest fork, `width` that of the widest.
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

    def then(self, after: Counts) -> Counts:
        """This followed by `after`: everything adds up but depth and width."""
        return self._joined(after, self.critical_path_tokens + after.critical_path_tokens)

    def beside(self, other: Counts) -> Counts:
        """This in parallel with `other`: the critical path is the longer of the two."""
        return self._joined(other, max(self.critical_path_tokens, other.critical_path_tokens))

    def _joined(self, other: Counts, critical_path_tokens: int) -> Counts:
        return Counts(
            self.total_tokens + other.total_tokens,
            self.cancelled_tokens + other.cancelled_tokens,
            critical_path_tokens,
            self.prefill_extra_tokens + other.prefill_extra_tokens,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
            self.forks + other.forks,
            self.threads + other.threads,
            max(self.depth, other.depth),
            max(self.width, other.width),
        )


@dataclass(frozen=True, slots=True)
class Thought:
    """The end of a strategy's work: never without an answer (see `make_strategy`).

    `key` is the answer in canonical form, where the strategy compares answers. `fidelity` says
    whether this ran as it was published, and `lost` in words what it lost if not. `why`: what ended
    it where it ended, or chose the answer. `evidence`: what markers such as `[3]` in the answer
    stand for, where the strategy cites. `cut`: the answer, or a part of it,
    ends where its tokens were spent, and not where the model ended it.
    """

    answer: str
    key: str | None = None
    tree: ThreadRecord | None = None
    counts: Counts = field(default_factory=Counts)
    samples: tuple[Sample, ...] = ()
    fidelity: Fidelity = "exact"
    lost: str = ""
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    cut: bool = False
