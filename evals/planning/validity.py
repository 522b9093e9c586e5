"""How many plans of a real model are no plans, with and without the grammar, on random tools.

The tools have nested parameters and results of all kinds; the questions are as random. What a plan
is worth is not looked at. Knows no benchmark.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort
from evals.planning.quality.planned import kind
from evals.planning.registries import random_registry
from weft.core.errors import ModelError, PlanError, ServeError
from weft.core.ports import ModelClient, Sampling
from weft.core.values import ToolSpec, Usage
from weft.planner.grammar import GrammarLimits
from weft.planner.grammar.limits import Constrain
from weft.planner.plan import PlanLimits
from weft.planner.planner import Planner
from weft.planner.prompt import PLAN_PROMPT_VERSION, plan_messages
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.vllm.client.model import VllmModel
from weft.serving.vllm.launch.spec import ServeSpec

CASE: Final = "validity"
NAME: Final = "smollm2-135m-instruct"
SAMPLING: Final = Sampling(max_tokens=240, temperature=0.8)
LIMITS: Final = PlanLimits(steps=3)
GRAMMAR: Final = GrammarLimits(chars=24, items=3)
EACH: Final = 8
"""Plans for the same tools, so that the server's prefix cache has something to do."""

_QUESTIONS: Final = (
    "Find the cheapest offer and tell me its price.",
    'What is the weather in "São Paulo", and what costs $5 there?',
    "List all users, then write each of them a mail.",
    "Compare the first two results and join what they have in common.",
    "Book a room for two people if there is one below 100.",
)


@dataclass
class Tally:
    """What came of plans so far: `errors` of the text by class, and of the model, which wrote none.

    `seconds` is the time for all of them.
    """

    plans: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    unwritten: Counter[str] = field(default_factory=Counter)

    def rows(self, system: str) -> list[Row]:
        """The figures of `system`."""
        invalid, written = self.errors.total(), self.plans - self.unwritten.total()
        found = [
            Row(CASE, system, "plans", self.plans, "plans"),
            Row(CASE, system, "invalid_plans", invalid, "plans"),
            Row(CASE, system, "invalid_rate", invalid / written if written else None, "share"),
            Row(CASE, system, "steps", self.steps / self.plans, "steps a plan"),
            Row(CASE, system, "completion_tokens", self.tokens / self.plans, "tokens a plan"),
            Row(CASE, system, "seconds", self.seconds, "s for all"),
        ]
        for error, count in self.errors.most_common():
            found.append(Row(CASE, system, f"invalid: {error}", count, "plans"))
        for error, count in self.unwritten.most_common():
            found.append(Row(CASE, system, f"unwritten: {error}", count, "plans"))
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A model and how many plans it is asked for, by how firmly it is held; `at_once`."""

    name: str
    words: str
    make: Callable[[], ModelClient]
    at_once: int
    plans: Sequence[tuple[Constrain, int]]


def _local() -> ModelClient:
    return LocalModel(NAME, LocalOptions(max_batch=8))


def _vllm() -> ModelClient:
    return VllmModel(ServeSpec(NAME, max_context_tokens=4096, max_seqs=24))


def asked(effort: Effort) -> tuple[Asked, ...]:
    """The models, with at least 1,000 constrained plans at full effort."""
    few = effort.of(8, 64)
    free, whole, lines = effort.of((24, 24, 16), (240, 640, 400))
    return (
        Asked(
            "local",
            f"{NAME}, weft's local engine",
            _local,
            8,
            (("never", few), ("plan", few), ("line", few)),
        ),
        Asked(
            "vllm",
            f"{NAME}, vLLM",
            _vllm,
            24,
            (("never", free), ("plan", whole), ("line", lines)),
        ),
    )


async def run(effort: Effort) -> list[Row]:
    """All rows; a model that is not here is skipped in words."""
    rows: list[Row] = []
    for one in asked(effort):
        try:
            rows += await _of_model(one)
        except (ModelError, ServeError) as error:
            rows.append(Row(CASE, one.name, f"skipped: {error}", None, ""))
    return rows


async def _of_model(one: Asked) -> list[Row]:
    rows: list[Row] = []
    async with aclosing(one.make()) as model:
        if isinstance(model, VllmModel):
            await model.start()
        for constrain, plans in one.plans:
            system = f"{one.name} {constrain}"
            tally = await tallied(model, constrain, range(plans), one.at_once)
            about = f"{one.words}, temperature {SAMPLING.temperature:g}, {PLAN_PROMPT_VERSION}"
            rows.append(Row(CASE, system, f"model: {about}", None, ""))
            rows += tally.rows(system)
            print(f"{system}: {tally.errors.total()} of {tally.plans}", file=sys.stderr, flush=True)
    return rows


async def tallied(
    model: ModelClient, constrain: Constrain, numbers: Sequence[int], at_once: int
) -> Tally:
    """The plans with these numbers, `at_once` at a time: each stands for tools and a question."""
    tally = Tally()
    places = asyncio.Semaphore(at_once)
    begun = time.monotonic()

    async def one(number: int) -> None:
        async with places:
            await _plan(model, constrain, number, tally)

    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number))
    tally.seconds = time.monotonic() - begun
    return tally


async def _plan(model: ModelClient, constrain: Constrain, number: int, tally: Tally) -> None:
    tools, question = task(number)

    def spend(usage: Usage) -> None:
        tally.tokens += usage.completion_tokens

    sampling = replace(SAMPLING, seed=number)
    planner = Planner(model, constrain=constrain, sampling=sampling, limits=LIMITS, grammar=GRAMMAR)
    tally.plans += 1
    try:
        stream = planner.stream(plan_messages(question, tools), tools, on_usage=spend)
        async with aclosing(stream) as parts:
            async for _ in parts:
                tally.steps += 1
        tally.steps -= 1  # the plan itself comes last
    except PlanError as error:
        tally.errors["cut_off" if "cut off" in error.message else kind(error)] += 1
    except ModelError as error:
        tally.unwritten[type(error).__name__] += 1


def task(number: int) -> tuple[tuple[ToolSpec, ...], str]:
    """The tools and the question of a plan."""
    source = random.Random(number // EACH)
    return random_registry(source, odd=source.random() < 0.5), source.choice(_QUESTIONS)
