"""The port of samplers: decide from the state of samples which to start and cancel.

A sampler has no model, clock or text, so the same object decides live and over recorded samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from weft.reasoning.selection.vote import Tally, Vote, count_votes
from weft.reasoning.thought import SampleStatus

SampleRunStatus = Literal["running"] | SampleStatus


@dataclass(slots=True)
class SampleState:
    """The state of one sample. The run writes it, samplers read it.

    `key`: its answer in canonical form, once it has ended with one. `probes`: its answers at each
    multiple of the sampler's `probe_tokens`, None where there was none. `lowest_confidence`: the
    lowest confidence of any window of its tokens so far.
    """

    index: int
    status: SampleRunStatus = "running"
    tokens: int = 0
    key: str | None = None
    probes: list[str | None] = field(default_factory=list)
    lowest_confidence: float | None = None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.status == "running"

    @property
    def opinion(self) -> str | None:
        """Its answer, or without one that of its last probe."""
        return self.key if self.key is not None or not self.probes else self.probes[-1]


class SamplePool:
    """The samples in the order of their start, including queued ones."""

    def __init__(self, branches: Iterable[SampleState] = ()) -> None:
        self.branches: list[SampleState] = list(branches)

    def start(self, count: int) -> tuple[SampleState, ...]:
        """Add `count` samples."""
        first = len(self.branches)
        started = tuple(SampleState(first + place) for place in range(count))
        self.branches.extend(started)
        return started

    @property
    def running(self) -> tuple[SampleState, ...]:
        """Samples that have not ended."""
        return tuple(branch for branch in self.branches if branch.running)

    @property
    def whole(self) -> tuple[SampleState, ...]:
        """Samples that ended by themselves: not cut off, not cancelled, not failed."""
        return tuple(branch for branch in self.branches if branch.status == "finished")

    @property
    def ended(self) -> tuple[SampleState, ...]:
        """Samples that have ended, except for cancelled ones."""
        return tuple(b for b in self.branches if not b.running and b.status != "cancelled")


@dataclass(frozen=True, slots=True)
class SamplerDecision:
    """The next action of a sampler.

    Start `start` more samples; cancel those with the indices `cancel`. `stop`: cancel all running
    ones, and let the `voters` vote (None: all that ended with an answer), each with its `opinion`
    and its weight in `weights`, if any. `why` explains a stop and cancellations.
    """

    start: int = 0
    cancel: tuple[int, ...] = ()
    stop: bool = False
    voters: tuple[int, ...] | None = None
    weights: Mapping[int, float] | None = None
    why: str = ""


GO_ON = SamplerDecision()
"""No action until the next change."""


class Sampler(Protocol):
    """Decides over the samples of one question; each question has a new sampler.

    `limit`: the most samples it starts. `probe_tokens`: it needs a probe of each running sample at
    every multiple of so many tokens; None: no probes. `confidence`: it reads
    `SampleState.lowest_confidence`, of windows of so many tokens; None: it does not.
    """

    @property
    def limit(self) -> int: ...

    @property
    def probe_tokens(self) -> int | None: ...

    @property
    def confidence(self) -> int | None: ...

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """The next action, at the beginning and after each change of the pool.

        Simultaneous changes are one change. The run stops by itself when nothing runs and nothing
        is to be started.
        """


MakeSampler = Callable[[], Sampler]


def ended_votes(branches: Sequence[SampleState]) -> list[Vote]:
    """The votes of those of `branches` that ended with an answer."""
    return [Vote(b.index, b.key, b.tokens) for b in branches if b.key is not None]


def decided_winner(branches: Sequence[SampleState]) -> Tally | None:
    """The answer that wins the vote of all `branches` however the running ones end, or None.

    Each other answer, including an unseen one, is credited with every running sample. A winner
    against that has won; on equal counts when its shortest sample is shorter than any of theirs can
    still be, which is at least the tokens written so far.
    """
    running = [branch for branch in branches if branch.running]
    tallies = count_votes(ended_votes([branch for branch in branches if not branch.running]))
    if not tallies:
        return None
    winner, *others = tallies
    least = min((branch.tokens for branch in running), default=0)
    rivals = [(other.count, other.shortest) for other in others] + [(0, least)]
    for count, shortest in rivals:
        reach = count + len(running)
        tie_is_lost = bool(running) and winner.shortest >= min(shortest, least)
        if reach > winner.count or (reach == winner.count and tie_is_lost):
            return None
    return winner
