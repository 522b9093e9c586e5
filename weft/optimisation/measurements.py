"""Outcomes in blocks, paid from one budget: a step that it does not pay for is not begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from weft.optimisation.candidates import (
    Block,
    CallBudget,
    Candidate,
    CaseId,
    CaseOutcome,
    Evaluator,
    Proposal,
    Proposer,
    SearchState,
)

_TOGETHER: Final = 32
_CAUTION: Final = 1.25


@dataclass
class Measurements:
    """All outcomes on development cases so far (`blocks`), each with the baseline in it.

    A step is weighed by the most calls that it could take, in the proportion that calls had to that
    bound so far, and a quarter more: retries and repairs are rare. The budget itself stays hard.
    `reserve` is such a bound, kept back for the held-out cases. `step` is entered for each step, by
    its purpose.
    """

    evaluator: Evaluator
    baseline: Candidate
    budget: CallBudget
    replicates: int = 1
    reserve: int = 0
    blocks: list[Block] = field(default_factory=list)
    step: Callable[[str], AbstractContextManager[object]] = nullcontext
    _bound: int = 0
    _made: int = 0

    @property
    def left(self) -> int:
        """Calls that may be made besides those that are kept back."""
        return self.budget.left - self._likely(self.reserve)

    async def develop(
        self, candidates: Sequence[Candidate], cases: Sequence[CaseId], purpose: str
    ) -> Block | None:
        """Measure on as many of `cases` as can be paid for, and remember; None: on none."""
        own = self._with_baseline(candidates)
        affordable, left = 0, self.left
        for count in range(len(cases), 0, -1):
            if self._needed(own, cases[:count]) <= left:
                affordable = count
                break
        if not affordable:
            return None
        block = await self._run(own, cases[:affordable], purpose)
        self.blocks.append(block)
        return block

    async def all_of(
        self, candidates: Sequence[Candidate], cases: Sequence[CaseId], purpose: str
    ) -> Block | None:
        """Measure on all `cases`, and do not remember; None where the budget does not pay."""
        own = self._with_baseline(candidates)
        if self._needed(own, cases) > self.left:
            return None
        return await self._run(own, cases, purpose)

    async def proposed(self, proposers: Sequence[Proposer], state: SearchState) -> list[Candidate]:
        """What the proposers name, as far as the budget pays for asking them."""
        named: list[Candidate] = []
        for proposer in proposers:
            if proposer.calls > self.left:
                continue
            with self.step("proposals"):
                made: Proposal = await proposer.propose(state)
            self.budget.spend(made.calls, "proposals")
            named += made.candidates
        return list(dict.fromkeys(named))

    def of(self, candidate: Candidate) -> tuple[list[CaseOutcome], list[CaseOutcome]]:
        """The candidate's outcomes and, case by case, the baseline's beside them."""
        blocks = [block for block in self.blocks if candidate in block]
        new = [outcome for block in blocks for outcome in block[candidate]]
        return new, [outcome for block in blocks for outcome in block[self.baseline]]

    async def _run(
        self, candidates: Sequence[Candidate], cases: Sequence[CaseId], purpose: str
    ) -> Block:
        """All candidates side by side, some cases at a time: if the model changes meanwhile, it
        changes for all of them.
        """
        block: dict[Candidate, list[CaseOutcome]] = {each: [] for each in candidates}
        bound, before = self._most(candidates, cases), self.budget.spent
        with self.step(purpose):
            for at in range(0, len(cases), _TOGETHER):
                part = cases[at : at + _TOGETHER]
                async with asyncio.TaskGroup() as group:
                    tasks = {
                        each: group.create_task(
                            self.evaluator.outcomes(each, part, self.replicates)
                        )
                        for each in candidates
                    }
                for each, task in tasks.items():
                    block[each].extend(task.result())
                calls = sum(outcome.calls for task in tasks.values() for outcome in task.result())
                self.budget.spend(calls, purpose)
        self._bound += bound
        self._made += self.budget.spent - before
        return _comparable(block, self.baseline)

    def _needed(self, candidates: Sequence[Candidate], cases: Sequence[CaseId]) -> int:
        return self._likely(self._most(candidates, cases))

    def _likely(self, bound: int) -> int:
        """The calls that are expected where there may be `bound`, and a quarter more."""
        if not self._bound:
            return bound
        return min(bound, ceil(bound * _CAUTION * self._made / self._bound))

    def _most(self, candidates: Sequence[Candidate], cases: Sequence[CaseId]) -> int:
        return sum(self.evaluator.calls_needed(each, cases, self.replicates) for each in candidates)

    def _with_baseline(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return list(dict.fromkeys([self.baseline, *candidates]))


def _comparable(block: Mapping[Candidate, list[CaseOutcome]], baseline: Candidate) -> Block:
    """The block, in which no candidate gains on a case that could not be measured.

    Where the baseline has no score, all have the same one; another candidate without one scores 0,
    so that what breaks a metric gains nothing by it.
    """
    unscored = {at for at, outcome in enumerate(block[baseline]) if not outcome.scored}
    if not unscored:
        return block
    return {
        each: [
            replace(outcome, score=0.0) if at in unscored else outcome
            for at, outcome in enumerate(outcomes)
        ]
        for each, outcomes in block.items()
    }
