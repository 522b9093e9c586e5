"""The port of selectors: samples in, the chosen one out."""

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
    """The chosen sample, and the reason in words.

    `index`: the sample's; None: no sample was chosen. `answer`: a text from none of the samples, or
    for several of them. `scores` of samples by index, if any. `cut`: `answer` is cut off.
    """

    index: int | None
    key: str | None
    why: str
    answer: str | None = None
    scores: Mapping[int, float] = field(default_factory=dict)
    cut: bool = False


class Selector(Protocol):
    """A method of selection among the samples that have a vote."""

    @property
    def name(self) -> str:
        """The name in settings."""

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        """Choose one of `samples`. Model calls and executions become nodes of `thread`.

        Samples without a key can be chosen only where no other has one. The choice does not depend
        on the order in which samples ended; ties go to the higher mean score, then to the shorter,
        then to the lowest index. With an empty budget or a failed call a simpler method decides,
        and `why` says so.
        """


class PairwiseJudge(Protocol):
    """Compares two samples, for example by an input on which they differ (S*)."""

    async def compare(
        self, thread: ChatThread, question: Question, one: Sample, other: Sample
    ) -> float:
        """Above 0: `one` is better; below 0: `other` is; 0: no difference was found."""


class Scorer(Protocol):
    """Scores samples; higher is better."""

    async def score(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """One score for each sample, in order; None: not judged."""


def sample_votes(
    samples: Sequence[Sample], weights: Mapping[int, float] | None = None
) -> list[Vote]:
    """The votes of `samples` that have a key, of weight 1 or as in `weights`."""
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
    """The winner of `count` over `cast`; without any vote the shortest sample that has a text."""
    tallies = count(cast)
    if not tallies:
        return shortest_written(samples)
    winner = tallies[0]
    of = sum(tally.count for tally in tallies)
    why = f"{winner.count} of {of} {how} for {winner.key!r}"
    if len(tallies) > 1:
        why += f", then {tallies[1].count} for {tallies[1].key!r}"
    return Selection(winner.best, winner.key, why)


def shortest_written(samples: Sequence[Sample]) -> Selection:
    """The choice without comparable answers: a whole sample, then the shortest."""
    written = [sample for sample in samples if sample.text.strip()]
    if not written:
        return Selection(None, None, "no sample has an answer")
    chosen = min(written, key=lambda s: (s.status != "finished", s.tokens, s.index))
    return Selection(chosen.index, None, "no sample has an answer that can be compared")
