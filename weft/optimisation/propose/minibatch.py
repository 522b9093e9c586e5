"""Minibatches of training cases, and what candidates gain on them: a gate for what is spent on a
candidate, never the reason to accept it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from random import Random
from typing import Final

from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, KnobOptions
from weft.optimisation.propose.context import (
    ObservedRun,
    ProposalContext,
    observation_calls,
    observe_within,
)

_LEAST_GROWTH: Final = 1e-9
"""Below that a sum of scores differs by rounding only."""


def minibatch(cases: Sequence[Case], seed: int, step: int, size: int) -> list[Case]:
    """The `size` cases of a step: all cases in one random order after another (epochs).

    A batch over the end of an epoch has each case once.
    """
    if not cases:
        return []
    found: dict[int, Case] = {}
    for number in range(step * size, step * size + min(size, len(cases))):
        epoch, place = divmod(number, len(cases))
        order = list(range(len(cases)))
        Random(f"{seed}:epoch:{epoch}").shuffle(order)  # noqa: S311 - repeatable
        found[order[place]] = cases[order[place]]
    return list(found.values())


def imperfect(runs: Sequence[ObservedRun], perfect: float) -> list[ObservedRun]:
    """The runs with a score below `perfect`."""
    return [run for run in runs if run.score is not None and run.score < perfect]


def growth(old: Sequence[ObservedRun], new: Sequence[ObservedRun]) -> float:
    """By how much the sum of scores grows, on the cases that both have; 0 where only by rounding.

    A case without an old score is left out; without a new one, it counts as 0.
    """
    before = {run.case.id: run.score for run in old if run.score is not None}
    total = fsum((run.score or 0.0) - before[run.case.id] for run in new if run.case.id in before)
    return total if abs(total) > _LEAST_GROWTH else 0.0


def batch_calls(
    context: ProposalContext, knobs: KnobOptions, most_calls: int | None, usual: int, runs: int
) -> int:
    """`most_calls`, or by default `usual`, raised to what `runs` runs of a case may take."""
    if most_calls is not None:
        return most_calls
    return max(usual, runs * observation_calls(context, knobs, None, 0))


@dataclass(slots=True)
class ObservationBudget:
    """Runs on training cases, for `left` more model calls at most, whatever each of them takes."""

    context: ProposalContext
    left: int

    async def runs(
        self, candidate: Candidate, cases: Sequence[Case], share: int = 1
    ) -> list[ObservedRun]:
        """On the first cases, as many as the `share`-th part of the calls pays for."""
        before = self.context.calls
        found = await observe_within(self.context, candidate, cases, self.left // share)
        self.left -= self.context.calls - before
        return found

    async def side_by_side(
        self, candidates: Sequence[Candidate], cases: Sequence[Case]
    ) -> list[Sequence[ObservedRun]]:
        """Each on the same first cases, as many as the calls pay for, and all at once.

        How many these are does not depend on which run ends first.
        """
        bound, count = 0, 0
        for case in cases:
            bound += sum(self.context.bound(each, case) for each in candidates)
            if bound > self.left:
                break
            count += 1
        before = self.context.calls
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._observed(each, cases[:count])) for each in candidates]
        self.left -= self.context.calls - before
        return [task.result() for task in tasks]

    async def _observed(self, candidate: Candidate, cases: Sequence[Case]) -> Sequence[ObservedRun]:
        return await self.context.observe(candidate, cases) if cases else ()
