"""Every benchmark on every model, with and without the grammar; computes no score itself."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.planning.quality.benchmarks import BENCHMARKS, Question, some
from evals.planning.quality.models import AT_ONCE, MODELS, Served, opened
from evals.planning.quality.planned import planned
from evals.planning.quality.rows import Graded, grade_rows
from weft.core.errors import ModelError, ServeError
from weft.core.ports import ModelClient
from weft.planner.grammar.limits import Constrain
from weft.planner.prompt import PLAN_PROMPT_VERSION

CONSTRAINTS: Final[tuple[Constrain, ...]] = ("never", "auto")


async def run(effort: Effort) -> list[Row]:
    """All rows, in a hurry those of the first model that is here; others are skipped in words.

    Raises: `Skipped` without data.
    """
    rows: list[Row] = []
    for served in MODELS:
        count = effort.of(served.few, served.many)
        questions = {name: some(name, count) for name in BENCHMARKS}
        try:
            rows += await _of_model(served, questions)
            if effort.quick:
                return rows
        except (ModelError, ServeError) as error:
            reason = f"skipped: {error}".splitlines()[0]
            print(f"{served.name}: {reason}", file=sys.stderr, flush=True)
            rows.append(Row("quality", served.name, reason, None, ""))
    if all(row.metric.startswith("skipped") for row in rows):
        raise Skipped("no model could be asked")
    return rows


async def _of_model(served: Served, questions: dict[str, list[Question]]) -> list[Row]:
    rows = []
    async with opened(served) as model:
        for constrain in CONSTRAINTS:
            system = f"{served.name}, {'free' if constrain == 'never' else 'grammar'}"
            words = f"{served.words}; prompt {PLAN_PROMPT_VERSION}; constrain={constrain}"
            rows.append(Row("quality", system, "model", None, words))
            for name, asked in questions.items():
                print(f"measuring {name} on {system}", file=sys.stderr, flush=True)
                started = time.monotonic()
                graded = await _graded(model, constrain, asked)
                rows += grade_rows(name, system, graded, time.monotonic() - started)
    return rows


async def _graded(
    model: ModelClient, constrain: Constrain, questions: list[Question]
) -> list[Graded]:
    bound = asyncio.Semaphore(AT_ONCE)

    async def grade(question: Question) -> Graded:
        async with bound:
            found = await planned(model, constrain, question.question, question.tools)
        tokens = found.usage.completion_tokens
        if found.plan is None:
            return Graded(question.nothing, found.error, "", tokens)
        scores, wrong = question.score(found.plan)
        return Graded(scores, "", wrong, tokens)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(grade(question)) for question in questions]
    return [task.result() for task in tasks]
