"""What a small real model makes of the exercises: a majority of its samples, and S* around it.

`majority` is samples alone, none mended, and a vote by their outputs. `sstar` is S* as weft has it:
its samples are mended by running them on the public tests, and inputs tell them apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort
from evals.reasoning.code.exercises import EXERCISES, Exercise
from evals.reasoning.code.selecting import Examiner
from weft.core.errors import ModelError
from weft.core.ports import ModelClient
from weft.reasoning.code.prompts import PROMPT_VERSION
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.reasoning.code.sstar import SStarStrategy
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategy import run_thought

MODEL: Final = "smollm2-135m-instruct"
WIDTH: Final = 4
_AT_ONCE: Final = 16
_SAMPLES: Final = ThinkOptions(width=WIDTH, max_tokens=200)
OPTIONS: Final[Mapping[str, ThinkOptions]] = {
    "majority": replace(_SAMPLES, settings={"debug": 0, "select": "majority"}),
    "sstar": _SAMPLES,
}
"""By system. Without settings of its own a strategy does what its paper says."""


async def measure(effort: Effort, sandbox: CodeSandbox) -> list[Row]:
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
                tasks = {
                    system: [
                        group.create_task(tried(model, exercise, sandbox, options))
                        for exercise in exercises
                    ]
                    for system, options in OPTIONS.items()
                }
        except ModelError as error:
            return [Row(case, "", f"skipped: {error}", None, "")]
        except ExceptionGroup as errors:
            return [Row(case, "", f"failed: {errors.exceptions[0]}", None, "")]
    return list(
        rows_of(case, {name: [task.result() for task in own] for name, own in tasks.items()})
    )


@dataclass(frozen=True, slots=True)
class Tried:
    """One exercise: how many samples hold a program, pass the public tests, are right."""

    programs: int
    passing: int
    right: int
    chosen: bool
    tokens: int
    requests: int


async def tried(
    model: ModelClient, exercise: Exercise, sandbox: CodeSandbox, options: ThinkOptions
) -> Tried:
    """What comes of one exercise."""
    examiner = Examiner(exercise, sandbox)
    thought = await run_thought(SStarStrategy(model, options, sandbox), examiner.question)
    right = [await examiner.right(sample.text) for sample in thought.samples]
    return Tried(
        sum(bool(sample.text) for sample in thought.samples),
        sum(sample.score == 1.0 for sample in thought.samples),
        sum(right),
        await examiner.right(thought.answer),
        thought.counts.total_tokens,
        thought.counts.requests,
    )


def rows_of(case: str, found: Mapping[str, Sequence[Tried]]) -> Iterator[Row]:
    """Each system's samples and choices; the samples of `majority` are nothing but samples."""
    for system, own in found.items():
        number = len(own)
        samples = WIDTH * number
        shares = {
            "accuracy": sum(each.chosen for each in own) / number,
            "has_program": sum(each.programs for each in own) / samples,
            "passes_public": sum(each.passing for each in own) / samples,
            "sample_accuracy": sum(each.right for each in own) / samples,
            "oracle": sum(each.right > 0 for each in own) / number,
        }
        yield from (Row(case, system, metric, value, "share") for metric, value in shares.items())
        yield Row(case, system, "tokens", sum(each.tokens for each in own) / number, "tokens")
        yield Row(case, system, "requests", sum(each.requests for each in own) / number, "calls")
        yield Row(case, system, "exercises", number, "exercises")
