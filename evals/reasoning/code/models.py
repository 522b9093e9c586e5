"""What a small real model makes of the exercises: S* around it, and what it could have chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort
from evals.reasoning.code.exercises import EXERCISES, Exercise
from evals.reasoning.code.selecting import Examiner
from weft.core.errors import ModelError
from weft.core.ports import ModelClient
from weft.reasoning.code.prompts import PROMPT_VERSION
from weft.reasoning.code.sandbox.sandbox import Sandbox
from weft.reasoning.code.sstar import SStarStrategy
from weft.reasoning.options import ThinkOptions
from weft.reasoning.think import run_thought

MODEL: Final = "smollm2-135m-instruct"
WIDTH: Final = 4
_AT_ONCE: Final = 16
_OPTIONS: Final = ThinkOptions(
    width=WIDTH, max_tokens=200, settings={"debug": 0, "select": "majority"}
)


async def measure(effort: Effort, sandbox: Sandbox) -> list[Row]:
    """Samples of the small embedded model for all exercises, or for four of them, and a choice."""
    case = f"{MODEL} {PROMPT_VERSION}"
    if find_spec("torch") is None:
        return [Row(case, "", "skipped: no torch is installed", None, "")]
    from weft.serving.local import LocalModel, LocalOptions

    made = LocalModel(MODEL, LocalOptions(dtype="float32", max_batch=_AT_ONCE))
    exercises = EXERCISES[: effort.of(4, len(EXERCISES))]
    async with aclosing(made) as model:
        try:
            await model.capabilities()
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(_tried(model, exercise, sandbox)) for exercise in exercises
                ]
        except ModelError as error:
            return [Row(case, "", f"skipped: {error}", None, "")]
        except ExceptionGroup as errors:
            return [Row(case, "", f"failed: {errors.exceptions[0]}", None, "")]
    return list(_rows(case, [task.result() for task in tasks]))


@dataclass(frozen=True, slots=True)
class _Tried:
    """One exercise: how many samples hold a program, pass the public tests, are right."""

    programs: int
    passing: int
    right: int
    chosen: bool
    tokens: int


async def _tried(model: ModelClient, exercise: Exercise, sandbox: Sandbox) -> _Tried:
    examiner = Examiner(exercise, sandbox)
    thought = await run_thought(SStarStrategy(model, _OPTIONS, sandbox), examiner.question)
    right = [await examiner.right(sample.text) for sample in thought.samples]
    return _Tried(
        sum(bool(sample.text) for sample in thought.samples),
        sum(sample.score == 1.0 for sample in thought.samples),
        sum(right),
        await examiner.right(thought.answer),
        thought.counts.total_tokens,
    )


def _rows(case: str, found: Sequence[_Tried]) -> Iterator[Row]:
    number = len(found)
    samples = WIDTH * number
    yield Row(
        case, "sample", "has_program", sum(each.programs for each in found) / samples, "share"
    )
    yield Row(
        case, "sample", "passes_public", sum(each.passing for each in found) / samples, "share"
    )
    yield Row(case, "sample", "accuracy", sum(each.right for each in found) / samples, "share")
    yield Row(case, "majority", "accuracy", sum(each.chosen for each in found) / number, "share")
    yield Row(case, "oracle", "accuracy", sum(each.right > 0 for each in found) / number, "share")
    yield Row(case, "majority", "tokens", sum(each.tokens for each in found) / number, "tokens")
    yield Row(case, "", "exercises", number, "exercises")
