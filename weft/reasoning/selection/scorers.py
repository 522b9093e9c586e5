"""Scorers: a function of the sample, of its steps, or a model that grades. Knows no selection."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.core.errors import BuildError
from weft.core.values import JsonSchema
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import excerpt, grade_messages
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking, Job

Score = Callable[[Question, Sample], float | None]
StepScores = Callable[[Question, Sample], Sequence[float]]
Aggregate = Callable[[Sequence[float]], float]

AGGREGATES: Final[Mapping[str, Aggregate]] = {
    "last": lambda steps: steps[-1],
    "min": min,
    "product": math.prod,
}
"""How the scores of a sample's steps become its own (process reward models)."""

_BEST: Final = 10
_GRADE: Final = re.compile(r"(?<![\d.])(10|\d)(?![\d.]*\d)")
_OUT_OF: Final = re.compile(r"(?:/|out of)\s*10\b")
_SCHEMA: Final[JsonSchema] = {"type": "integer", "minimum": 0, "maximum": _BEST}


class FunctionScorer:
    """Scores by a fast, pure function of the question and a sample; None: it cannot be judged.

    NaN counts as None.
    """

    def __init__(self, score: Score) -> None:
        self._score = score

    async def score(
        self, _: Asking, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`."""
        return [_known(self._score(question, sample)) for sample in samples]


class StepScorer:
    """Scores by a function that scores each step, and an aggregate: last, min or product.

    Raises: `BuildError` for another aggregate.
    """

    def __init__(self, steps: StepScores, aggregate: str = "min") -> None:
        if aggregate not in AGGREGATES:
            hint = f"there are: {', '.join(AGGREGATES)}"
            raise BuildError(f"there is no aggregate {aggregate!r} of step scores", hint=hint)
        self._steps = steps
        self._aggregate = AGGREGATES[aggregate]

    async def score(
        self, _: Asking, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`."""
        found = (self._steps(question, sample) for sample in samples)
        return [_known(self._aggregate(steps)) if steps else None for steps in found]


class ModelScorer:
    """The model grades each sample from 0 to 10, the samples side by side; scores are 0 to 1."""

    async def score(
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`. None where a reply has no grade in it."""
        jobs = [(f"grade {sample.index}", _graded(question, sample)) for sample in samples]
        return await thread.fork("grades", jobs, role="grade")


def _graded(question: Question, sample: Sample) -> Job[float | None]:
    async def grade(thread: Asking) -> float | None:
        messages = grade_messages(question, excerpt(sample.text))
        reply = await thread.ask("grade", messages, schema=_SCHEMA, temperature=0.0)
        found = _GRADE.findall(_OUT_OF.sub("", reply.text)) if reply.ok else []
        thread.returns(found[-1] if found else "")
        return int(found[-1]) / _BEST if found else None

    return grade


def _known(score: float | None) -> float | None:
    return None if score is None or math.isnan(score) else float(score)
