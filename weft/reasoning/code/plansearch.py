"""PlanSearch: programs from different combinations of observations.

"Planning In Natural Language Improves LLM Search For Code Generation" (arXiv 2409.03733).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import ClassVar, Final

from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.code.prompts import (
    criticise_messages,
    deepen_messages,
    observe_messages,
    plan_messages,
    sketch_messages,
    write_messages,
)
from weft.reasoning.code.solver import SETTINGS, CodeStrategy, CodeTask, ProgramDraft, write_job
from weft.reasoning.parsing import read_points

_DEEPER: Final = 5
_CHARS: Final = 400
_TOGETHER: Final = 2


class PlanSearchStrategy(CodeStrategy):
    """About `width` programs, one of which is the answer.

    The model writes observations, then further observations from subsets of one or two of them.
    Each combination becomes a plan and a criticised plan, and each plan pseudo-code and a program.
    Settings: `observations`, their number; and `weft.reasoning.code.solver.SETTINGS`, where `debug`
    is 0 by default.
    """

    name = "plansearch"
    defaults: ClassVar = {**SETTINGS, "observations": 8, "debug": 0}
    least: ClassVar = {"observations": 1, "debug": 0}

    async def write(self, thread: ChatThread, task: CodeTask) -> Sequence[ProgramDraft | None]:
        most: int = self.settings["observations"]
        messages = observe_messages(task.problem, most)
        reply = await thread.ask("observe", messages, purpose="step", keep=task.keep)
        known = read_points(reply.text, most=most, chars=_CHARS).points
        plans = (self.options.width + 1) // 2
        chosen = subsets(known, plans, self.options.seed)
        jobs = [
            (f"combination{number}", self._combine_job(task, subset, number))
            for number, subset in enumerate(chosen)
        ]
        found = await thread.fork("combinations", jobs)
        return [draft for pair in found for draft in pair or (None,)][: self.options.width]

    def _combine_job(
        self, task: CodeTask, subset: Sequence[str], number: int
    ) -> Job[Sequence[ProgramDraft | None]]:
        async def combine(thread: ChatThread) -> Sequence[ProgramDraft | None]:
            messages = deepen_messages(task.problem, subset, _DEEPER)
            reply = await thread.ask("deepen", messages, purpose="step", keep=task.keep)
            deeper = read_points(reply.text, most=_DEEPER, chars=_CHARS).points
            follows = subsets(deeper, 1, self.options.seed + number)[0]
            plan = await thread.ask(
                "plan",
                plan_messages(task.problem, (*subset, *follows)),
                purpose="step",
                keep=task.keep,
            )
            variants = [("planned", False), ("criticised", True)]
            jobs = [(key, self._code_job(task, plan.text, criticise=new)) for key, new in variants]
            return await thread.fork("programs", jobs)

        return combine

    def _code_job(self, task: CodeTask, plan: str, *, criticise: bool) -> Job[ProgramDraft]:
        async def code(thread: ChatThread) -> ProgramDraft:
            followed = plan
            if criticise:
                messages = criticise_messages(task.problem, plan)
                criticised = await thread.ask("criticise", messages, purpose="step", keep=task.keep)
                followed = criticised.text or plan
            sketch = await thread.ask(
                "sketch",
                sketch_messages(task.problem, followed),
                purpose="step",
                keep=task.keep,
            )
            guide = [("Plan", followed), ("Pseudo-code", sketch.text)]
            messages = write_messages(
                task.problem, task.system, [part for part in guide if part[1]]
            )
            job = write_job(task.bench, messages, self.settings["debug"], task.keep)
            return await job(thread)

        return code


def subsets(known: Sequence[str], number: int, seed: int) -> list[tuple[str, ...]]:
    """`number` random subsets of one or two of `known`, different ones as long as there are any.

    Without `known` they are empty.
    """
    every = [each for size in range(1, _TOGETHER + 1) for each in combinations(known, size)]
    Random(seed).shuffle(every)  # noqa: S311 - which observations are combined is no secret
    every = every or [()]
    return [every[place % len(every)] for place in range(number)]
