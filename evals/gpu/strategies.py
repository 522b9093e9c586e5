"""The strategies at equal budgets, on the model that `--model` names: `evals.reasoning.live`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from evals.engine.rows import Row
from evals.gpu.bench import Bench
from evals.planning.effort import FULL
from evals.reasoning.equal_budget import Item, Terms
from evals.reasoning.live import LiveTerms
from evals.reasoning.live.evaluation import rows_of
from evals.reasoning.live.terms import TASKS
from evals.reasoning.models.tasks import Task, last_number_key
from weft.core.ports import ModelClient
from weft.reasoning.question import Question
from weft.workflow.runtime.models.factory import Models


def rows(bench: Bench) -> Iterator[Row]:
    """Raises: `WeftError` where the model cannot be asked."""
    if bench.dry:
        yield from asyncio.run(_dry())
        return
    yield from asyncio.run(_on_a_model(bench))


async def _on_a_model(bench: Bench) -> list[Row]:
    terms = LiveTerms(bench.named or bench.path.name, items=bench.items, at_once=4)
    declared = terms.declared
    if isinstance(declared, str) and declared.startswith("local:"):
        name = declared.partition(":")[2]
        options = {"device": bench.device}
        declared_here = {"use": "local", "model": name, "options": options}
        async with Models() as models:
            return await rows_of(models.of(declared_here), terms, FULL)
    async with Models() as models:
        return await rows_of(models.of(declared), terms, FULL)


async def _dry() -> list[Row]:
    """One question, to a scripted model."""
    from weft.testing import TokenModel, TokenReply

    def sevens(count: int) -> Task:
        items = [Item("seven", Question("3 + 4?"), lambda _, key: key == "7")] * count
        return Task("sevens", items, last_number_key)

    model: ModelClient = TokenModel(lambda *_: TokenReply("It is so. Answer: 7"))
    terms = LiveTerms("scripted", items=1, tasks=("sevens",), terms=Terms(32, 2))
    return await rows_of(model, terms, FULL, {**TASKS, "sevens": sevens})
