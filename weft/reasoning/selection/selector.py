"""The port of selectors: samples in, the chosen one out. Knows no sampler and no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.question import Question
from weft.reasoning.selection.vote import Tally, Vote
from weft.reasoning.thought import Sample


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen, and why in words.

    `index` is the chosen sample's; None: no sample was. `answer`: a text that is none of the
    samples', or stands for several. `scores` of samples by index, where there are some.
    `cut`: that `answer` is cut off.
    """

    index: int | None
    key: str | None
    why: str
    answer: str | None = None
    scores: Mapping[int, float] = field(default_factory=dict)
    cut: bool = False


class Selector(Protocol):
    """A way to choose. It sees the samples that have a vote."""

    @property
    def name(self) -> str:
        """What it is called in settings."""

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        """The chosen one of `samples`. Model calls and executions become nodes of `thread`.

        Samples without a key can be chosen only where no other has one. The choice does not depend
        on the order in which samples ended; ties go to the higher mean score, then to the shorter,
        then to the lowest index. An empty budget or a call that fails ends in a simpler choice, and
        `why` says so.
        """


class PairwiseJudge(Protocol):
    """Tells which of two samples is better, by an input on which they differ (S*), say."""

    async def compare(
        self, thread: ChatThread, question: Question, one: Sample, other: Sample
    ) -> float:
        """Above 0: `one` is better, below 0: `other` is, 0: no difference was found."""


class Scorer(Protocol):
    """Says how good each sample is; higher is better."""

    async def score(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """One score for each sample, in order; None: it could not be judged."""


def sample_votes(
    samples: Sequence[Sample], weights: Mapping[int, float] | None = None
) -> list[Vote]:
    """The votes of `samples` that have a key; each weighs 1, or what `weights` say."""
    return [
        Vote(s.index, s.key, s.tokens, 1.0 if weights is None else weights[s.index], s.score)
        for s in samples
        if s.key is not None
    ]


def elect(
    samples: Sequence[Sample],
    cast: Sequence[Vote],
    count: Callable[[Sequence[Vote]], Sequence[Tally]],
    how: str = "votes",
) -> Selection:
    """The winner of `count` over `cast`; without any ballot the shortest sample that has a text."""
    standings = count(cast)
    if not standings:
        return shortest_written(samples)
    winner = standings[0]
    of = sum(standing.count for standing in standings)
    why = f"{winner.count} of {of} {how} for {winner.key!r}"
    if len(standings) > 1:
        why += f", then {standings[1].count} for {standings[1].key!r}"
    return Selection(winner.best, winner.key, why)


def shortest_written(samples: Sequence[Sample]) -> Selection:
    """The choice where no answer can be compared: one that is whole, then the shortest."""
    written = [sample for sample in samples if sample.text.strip()]
    if not written:
        return Selection(None, None, "no sample has an answer")
    chosen = min(written, key=lambda s: (s.status != "finished", s.tokens, s.index))
    return Selection(chosen.index, None, "no sample has an answer that can be compared")
