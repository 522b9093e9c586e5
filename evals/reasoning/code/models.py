"""What a small real model makes of the exercises: S* around it, and what it could have chosen."""

from __future__ import annotations

from contextlib import aclosing
from importlib.util import find_spec
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort
from evals.reasoning.code.exercises import EXERCISES
from evals.reasoning.code.selecting import Examiner
from weft.core.errors import ModelError, ReasoningError
from weft.core.ports import ModelClient
from weft.reasoning.code.prompts import PROMPT_VERSION
from weft.reasoning.code.sandbox.sandbox import Sandbox
from weft.reasoning.code.sstar import SStarStrategy
from weft.reasoning.options import ThinkOptions
from weft.reasoning.think import run_thought

MODEL: Final = "smollm2-135m-instruct"
WIDTH: Final = 4


async def measure(effort: Effort, sandbox: Sandbox) -> list[Row]:
    """S* with the small embedded model, on all exercises or on four of them."""
    case = f"{MODEL} {PROMPT_VERSION}"
    if find_spec("torch") is None:
        return [Row(case, "", "skipped: no torch is installed", None, "")]
    from weft.serving.local import LocalModel, LocalOptions

    async with aclosing(LocalModel(MODEL, LocalOptions(dtype="float32", max_batch=WIDTH))) as model:
        try:
            await model.capabilities()
        except ModelError as error:
            return [Row(case, "", f"skipped: {error}", None, "")]
        return await _measured(case, model, effort.of(4, len(EXERCISES)), sandbox)


async def _measured(case: str, model: ModelClient, number: int, sandbox: Sandbox) -> list[Row]:
    options = ThinkOptions(
        width=WIDTH, max_tokens=256, budget=6144, settings={"debug": 1, "select": "majority"}
    )
    programs = passing = chosen = possible = mean = tokens = 0.0
    for exercise in EXERCISES[:number]:
        examiner = Examiner(exercise, sandbox)
        strategy = SStarStrategy(model, options, sandbox)
        try:
            thought = await run_thought(strategy, examiner.question)
        except ReasoningError as error:
            return [Row(case, exercise.name, f"failed: {error}", None, "")]
        right = [await examiner.right(sample.text) for sample in thought.samples]
        programs += sum(bool(sample.text) for sample in thought.samples) / WIDTH
        passing += sum(sample.score == 1.0 for sample in thought.samples) / WIDTH
        mean += sum(right) / WIDTH
        chosen += await examiner.right(thought.answer)
        possible += any(right)
        tokens += thought.counts.total_tokens
    values = {
        ("sample", "has_program"): programs,
        ("sample", "passes_public"): passing,
        ("sample", "accuracy"): mean,
        ("sstar_majority", "accuracy"): chosen,
        ("oracle", "accuracy"): possible,
    }
    rows = [
        Row(case, system, metric, value / number, "share")
        for (system, metric), value in values.items()
    ]
    return [*rows, Row(case, "sstar_majority", "tokens", tokens / number, "tokens")]
