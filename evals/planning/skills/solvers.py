"""Who answers the cases: a model, free or held to the plan grammar, or a script."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evals.planning.quality.planned import MAX_TOKENS, planned
from evals.planning.skills.case import Answer, SkillCase
from weft.core.errors import ModelError
from weft.core.ports import ModelClient, ModelRequest, Sampling
from weft.core.ports.metering import complete
from weft.core.values import Message
from weft.planner.grammar.limits import Constrain
from weft.testing import FakeModel

AT_ONCE: Final = 16

Asked = tuple[str, SkillCase]
"""The skill and one of its cases."""


@dataclass(frozen=True, slots=True)
class ModelSolver:
    """A model that writes greedily, within `max_tokens`, thoughts included.

    `constrain` as in `weft.planner.grammar.limits`.

    A reply in words is asked for as such, or, under the grammar, as a plan that calls `respond`.
    Equal questions of several skills are asked once.
    """

    model: ModelClient
    constrain: Constrain
    max_tokens: int = MAX_TOKENS

    async def answers(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answers in the order asked; a request that fails is one of them, too."""
        bound = asyncio.Semaphore(AT_ONCE)
        done = 0

        async def one(case: SkillCase) -> Answer:
            nonlocal done
            async with bound:
                found = await self._answer(case)
            done += 1
            print(f"\r{done} of {len(distinct)} answers", end="", file=sys.stderr, flush=True)
            return found

        distinct = {_key(case): case for _, case in asked}
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(one(case)) for key, case in distinct.items()}
        print(file=sys.stderr)
        return [tasks[_key(case)].result() for _, case in asked]

    async def _answer(self, case: SkillCase) -> Answer:
        if case.plan is None and self.constrain == "never":
            return await self._reply(case)
        return await self._plan(case)

    async def _plan(self, case: SkillCase) -> Answer:
        found = await planned(
            self.model, self.constrain, case.question, case.tools, self.max_tokens
        )
        free = any("not held to a grammar" in note for note in found.notes)
        return Answer(found.plan, found.written, found.error, found.refused, free)

    async def _reply(self, case: SkillCase) -> Answer:
        sampling = Sampling(self.max_tokens, 0.0)
        request = ModelRequest((Message("user", case.question),), sampling=sampling)
        try:
            return Answer(text=(await complete(self.model, request)).text)
        except ModelError as error:
            return Answer(error=type(error).__name__, failed=True)


@dataclass(frozen=True, slots=True)
class ScriptedSolver:
    """Writes `text` of a skill and a case, which is then read as a model's would be."""

    text: Callable[[str, SkillCase], str]

    async def answers(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answers in the order asked."""
        return [
            await ModelSolver(FakeModel([self.text(skill, case)]), "never")._answer(case)
            for skill, case in asked
        ]


def _key(case: SkillCase) -> tuple[object, ...]:
    return case.question, case.plan is None, tuple(tool.name for tool in case.tools)
