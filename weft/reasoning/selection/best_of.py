"""Best of n by a scorer, alone or as weights of a vote; scorers by a function or the model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.core.errors import BuildError
from weft.core.values import JsonSchema
from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import excerpt, grade_messages
from weft.reasoning.selection.selector import (
    Scorer,
    Selection,
    elect,
    sample_votes,
    shortest_written,
)
from weft.reasoning.selection.vote import count_votes
from weft.reasoning.thought import Sample

Score = Callable[[Question, Sample], float | None]
StepScores = Callable[[Question, Sample], Sequence[float]]
Aggregate = Callable[[Sequence[float]], float]

AGGREGATES: Final[Mapping[str, Aggregate]] = {
    "last": lambda steps: steps[-1],
    "min": min,
    "product": math.prod,
}
"""How the scores of a sample's steps are combined (process reward models)."""

_BEST: Final = 10
_GRADE: Final = re.compile(r"(?<![\d.])(10|\d)(?![\d.]*\d)")
_OUT_OF: Final = re.compile(r"(?:/|out of)\s*10\b")
_SCHEMA: Final[JsonSchema] = {"type": "integer", "minimum": 0, "maximum": _BEST}


class FunctionScorer:
    """Scores by a fast, pure function of question and sample; None and NaN: not judged."""

    def __init__(self, score: Score) -> None:
        self._score = score

    async def score(
        self, _: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        return [_valid(self._score(question, sample)) for sample in samples]


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
        self, _: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        found = (self._steps(question, sample) for sample in samples)
        return [_valid(self._aggregate(steps)) if steps else None for steps in found]


class ModelScorer:
    """The model grades each sample from 0 to 10, in parallel; scores are 0 to 1."""

    async def score(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`. None where a reply has no grade."""
        jobs = [(f"grade {sample.index}", _grade_job(question, sample)) for sample in samples]
        return await thread.fork("grades", jobs, role="grade")


def _grade_job(question: Question, sample: Sample) -> Job[float | None]:
    async def grade(thread: ChatThread) -> float | None:
        messages = grade_messages(question, excerpt(sample.text))
        reply = await thread.ask("grade", messages, purpose="step", schema=_SCHEMA, temperature=0.0)
        found = _GRADE.findall(_OUT_OF.sub("", reply.text)) if reply.ok else []
        thread.returns(found[-1] if found else "")
        return int(found[-1]) / _BEST if found else None

    return grade


def _valid(score: float | None) -> float | None:
    return None if score is None or math.isnan(score) else float(score)


class BestOf:
    """The sample with the highest score; `vote`: the answer with the highest sum of scores.

    Scores that are summed must not be negative. Without any score the majority decides.
    """

    def __init__(self, scorer: Scorer, *, vote: bool = False) -> None:
        self._scorer = scorer
        self._vote = vote

    @property
    def name(self) -> str:
        return "best-weighted" if self._vote else "best"

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        """See `Selector.select`. Samples without a text are not scored."""
        written = [sample for sample in samples if sample.text.strip()]
        if not written:
            return shortest_written(samples)
        found = await self._scorer.score(thread, question, written)
        pairs = zip(written, found, strict=True)
        scored = [replace(s, score=score) for s, score in pairs if score is not None]
        if not scored:
            return elect(
                samples, sample_votes(samples), count_votes, "votes, nothing being scored,"
            )
        scores = {sample.index: sample.score or 0.0 for sample in scored}
        if self._vote and any(sample.key is not None for sample in scored):
            chosen = elect(samples, sample_votes(scored, scores), count_votes, "votes, by score,")
            return replace(chosen, scores=scores)
        best = min(scored, key=lambda s: (-(s.score or 0.0), s.tokens, s.index))
        why = f"the highest of {len(scored)} scores, {best.score:.3g}"
        return Selection(best.index, best.key, why, scores=scores)
