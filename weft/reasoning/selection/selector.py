"""The port of selectors: samples in, the chosen one out. Knows no sampler and no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weft.reasoning.question import Question
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking


@dataclass(frozen=True, slots=True)
class Selected:
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
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Selected:
        """The chosen one of `samples`. Model calls and executions become nodes of `thread`.

        Samples without a key can be chosen only where no other has one. The choice does not depend
        on the order in which samples ended; ties go to the higher mean score, then to the shorter,
        then to the lowest index. An empty purse or a call that fails ends in a simpler choice, and
        `why` says so.
        """


class Distinguisher(Protocol):
    """Tells which of two samples is better, by an input on which they differ (S*), say."""

    async def compare(
        self, thread: Asking, question: Question, one: Sample, other: Sample
    ) -> float:
        """Above 0: `one` is better, below 0: `other` is, 0: no difference was found."""


class Scorer(Protocol):
    """Says how good each sample is; higher is better."""

    async def score(
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """One score for each sample, in order; None: it could not be judged."""
