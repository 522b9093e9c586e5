"""What a search is for: one objective to improve, others to keep, as responses per case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from weft.core.errors import InputError
from weft.evaluation.statistics import quantile_of
from weft.optimisation.candidates import Block, Candidate
from weft.optimisation.factors import FactorModel, FactorSpace, Weights
from weft.optimisation.objectives import QUALITY, Objective, Outcomes

_PENALTY: Final = 10.0
_SHARE: Final = 0.04
"""By how much the share of cases above a latency limit may be off before a candidate is bad."""


@dataclass(frozen=True, slots=True)
class StudyGoal:
    """Improve `improve`; let each of `keep` get worse by its margin at most."""

    improve: Objective = QUALITY
    keep: tuple[Objective, ...] = ()

    def __post_init__(self) -> None:
        names = [objective.name for objective in self.objectives]
        if len(set(names)) < len(names):
            raise InputError("an objective is either improved or kept, and named once")

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All objectives, the improved one first."""
        return (self.improve, *self.keep)


@dataclass(frozen=True, slots=True)
class GoalResponses:
    """A goal in additive terms, measured against the baseline's outcomes so far.

    The mean of a response over cases says what an objective says: values for a mean; for a quantile
    minus the share of cases beyond a threshold. `slack`: how far each kept response may fall.
    """

    goal: StudyGoal
    thresholds: tuple[float | None, ...]
    slack: tuple[float, ...]

    @classmethod
    def of(cls, goal: StudyGoal, blocks: Sequence[Block], baseline: Candidate) -> GoalResponses:
        """For what was measured so far. The threshold of an improved quantile is that of all
        candidates together; of a kept one, the baseline's with its margin.
        """
        own = [outcome for block in blocks for outcome in block[baseline]]
        everything = [
            outcome for block in blocks for outcomes in block.values() for outcome in outcomes
        ]
        thresholds: list[float | None] = []
        slack = []
        for objective in goal.objectives:
            if objective.quantile is None:
                thresholds.append(None)
                slack.append(objective.allowed_loss(own))
                continue
            if objective == goal.improve:
                limit = quantile_of(objective.values(everything), 1 - objective.quantile)
            else:
                limit = objective.figure(own) - objective.allowed_loss(own)
            beyond = fmean(value < limit for value in objective.values(own))
            thresholds.append(limit)
            slack.append(max(0.0, 1 - objective.quantile + _SHARE - beyond))
        return cls(goal, tuple(thresholds), tuple(slack[1:]))

    def rows(self, outcomes: Outcomes) -> list[list[float]]:
        """The values of each response, case by case."""
        made = []
        for objective, limit in zip(self.goal.objectives, self.thresholds, strict=True):
            values = objective.values(outcomes)
            made.append(values if limit is None else [-float(each < limit) for each in values])
        return made

    def fit(self, space: FactorSpace, blocks: Sequence[Block]) -> FactorModel:
        """The factor model of all responses."""
        return FactorModel.fit(
            space,
            [{each: self.rows(found) for each, found in block.items()} for block in blocks],
        )

    def utility(
        self, features: Iterable[int], weights: Weights, doubt: Sequence[float] | None = None
    ) -> float:
        """The change of the improved response, less a penalty for what is not kept.

        `doubt`: by how much the change of each kept response may be off, in its favour.
        """
        active = list(features)
        changes = [sum(row[at] for at in active) for row in weights]
        for at, each in enumerate(doubt or (), 1):
            changes[at] += each
        return self.penalised(changes)

    def penalised(self, changes: Sequence[float]) -> float:
        """The first change, less ten times what the others fall beyond their slack."""
        beyond = (
            max(0.0, -change - slack) for change, slack in zip(changes[1:], self.slack, strict=True)
        )
        return changes[0] - _PENALTY * sum(beyond)

    def utilities(
        self, block: Block, baseline: Candidate, model: FactorModel | None = None
    ) -> Mapping[Candidate, list[float]]:
        """Case by case, of what a race measured; what is not kept costs every case alike.

        Whether an objective is kept is judged by the mean of `model`, which has seen more cases
        than this block, where there is one.
        """
        base = [fmean(row) for row in self.rows(block[baseline])]
        made = {}
        for candidate, outcomes in block.items():
            rows = self.rows(outcomes)
            changes = [fmean(row) - old for row, old in zip(rows, base, strict=True)]
            if model is not None:
                changes = [changes[0]] + [
                    model.change(candidate, at) for at in range(1, len(changes))
                ]
            loss = changes[0] - self.penalised(changes)
            made[candidate] = [value - loss for value in rows[0]]
        return made
