"""The port of selectors: samples in, the chosen one out. Knows no sampler and no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weft.engine import NodeContext
from weft.reasoning.question import Question
from weft.reasoning.thought import Counts, Sample


@dataclass(frozen=True, slots=True)
class Selected:
    """What was chosen, and why in words.

    `index` is the chosen sample's; None: the answer is none of the samples' (`answer` has it), or
    no sample had one. `scores` of samples by index, where there are some. `counts`: what choosing
    cost.
    """

    index: int | None
    key: str | None
    why: str
    answer: str | None = None
    scores: Mapping[int, float] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


class Selector(Protocol):
    """A way to choose. Selectors see samples that voted: with an answer, not cancelled."""

    @property
    def name(self) -> str:
        """What it is called in settings."""

    async def select(
        self, context: NodeContext, question: Question, samples: Sequence[Sample]
    ) -> Selected:
        """The chosen one of `samples`. Model calls and executions become nodes of `context`.

        The choice does not depend on the order in which samples ended; ties go to the higher mean
        score, then to the shorter, then to the lowest index.
        """


class Distinguisher(Protocol):
    """Tells which of two samples is better, by an input on which they differ (S*), say."""

    async def compare(
        self, context: NodeContext, question: Question, one: Sample, other: Sample
    ) -> float:
        """Above 0: `one` is better, below 0: `other` is, 0: no difference was found."""


class Scorer(Protocol):
    """Says how good each sample is; higher is better."""

    async def score(
        self, context: NodeContext, question: Question, samples: Sequence[Sample]
    ) -> tuple[Sequence[float], Counts]:
        """One score for each sample, in order, and what scoring cost."""
