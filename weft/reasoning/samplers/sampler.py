"""The port of samplers: what has become of the samples in, what to start and cancel out.

A sampler knows no model, clock or text, so the same object decides live and over recorded samples.
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
    """One sample as far as it has come. The host writes it, samplers read it.

    `key` is its answer in canonical form, once it has ended with one. `probes` are the answers it
    would have given at each multiple of the sampler's `probe_tokens`, None where there was none.
    `lowest_confidence` is the least confidence of any window of its tokens so far.
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
        """Its answer, or while it has none the last that a probe found."""
        return self.key if self.key is not None or not self.probes else self.probes[-1]


class SamplePool:
    """The samples in the order of their start, those that wait for their turn among them."""

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
        """Those that have not ended."""
        return tuple(branch for branch in self.branches if branch.running)

    @property
    def whole(self) -> tuple[SampleState, ...]:
        """Those that came to their own end: not cut off, not cancelled, not failed."""
        return tuple(branch for branch in self.branches if branch.status == "finished")

    @property
    def ended(self) -> tuple[SampleState, ...]:
        """Those that have ended in any way but being cancelled."""
        return tuple(b for b in self.branches if not b.running and b.status != "cancelled")


@dataclass(frozen=True, slots=True)
class SamplerDecision:
    """What is to be done now.

    `start` so many more samples; `cancel` those with these indices; `stop`: cancel all that run and
    let the `voters` vote (None: all that ended with an answer), each with its `opinion` and the
    weight in `weights`, where there are some. `why`: in words, for a stop and for cancellations.
    """

    start: int = 0
    cancel: tuple[int, ...] = ()
    stop: bool = False
    voters: tuple[int, ...] | None = None
    weights: Mapping[int, float] | None = None
    why: str = ""


GO_ON = SamplerDecision()
"""Nothing to do until something else happens."""


class Sampler(Protocol):
    """Decides over the samples of one question; a new one is made for each.

    `limit`: it never asks for more samples. `probe_tokens`: it wants an opinion of each running
    sample at every multiple of so many tokens; None: it reads no probes. `confidence`: it reads
    `SampleState.lowest_confidence`, of windows of so many tokens; None: it does not.
    """

    @property
    def limit(self) -> int: ...

    @property
    def probe_tokens(self) -> int | None: ...

    @property
    def confidence(self) -> int | None: ...

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """What to do, asked at the beginning and after each change of the pool.

        Changes of one instant are told together. When nothing runs and nothing is to be started,
        the host stops by itself.
        """


MakeSampler = Callable[[], Sampler]


def ended_votes(branches: Sequence[SampleState]) -> list[Vote]:
    """The votes of those of `branches` that ended with an answer."""
    return [Vote(b.index, b.key, b.tokens) for b in branches if b.key is not None]


def decided_winner(branches: Sequence[SampleState]) -> Tally | None:
    """The answer that wins the vote of all `branches` whatever those that run come to, or None.

    All other answers, and one that nobody has given yet, are given every running sample. Who still
    wins has won; on equal counts when its shortest sample is shorter than any of theirs can still
    be, which is at least the tokens that are written.
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
