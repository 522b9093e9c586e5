"""Exact enumeration: every candidate of a space on every case, each node once for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

from weft.core.errors import BuildError
from weft.core.values import Usage
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.space import Space, SpaceCandidate
from weft.optimisation.table import OutcomeTable, TableRun

MOST_CANDIDATES: Final = 20_000
"""More are refused: a race looks at most of them only briefly."""
Score = Callable[[Mapping[str, Any], TableRun], float]
"""The quality of one run on a case, from the case's inputs and the run; higher is better."""


@dataclass(slots=True)
class CandidateScores:
    """A candidate's scores, in the order of the cases. `whole`: what it costs without a table."""

    candidate: SpaceCandidate
    scores: list[float] = field(default_factory=list)
    whole: Usage = field(default_factory=Usage)

    @property
    def mean(self) -> float:
        """The mean score."""
        return fmean(self.scores)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """All candidates with their scores; `refused`: why others did not pass `weft check`.

    `spent`: what all of it cost. `whole`: what it would have cost without a table.
    """

    candidates: tuple[CandidateScores, ...]
    refused: tuple[EditError, ...]
    spent: Usage
    whole: Usage

    @property
    def best(self) -> CandidateScores:
        """The candidate with the highest mean on these cases; of equal ones the first.

        Its mean is too high as an estimate: it was chosen for it. See the gate on held-out cases.
        """
        return max(self.candidates, key=lambda each: each.mean)


async def enumerate_space(
    flow: AnyFlow,
    space: Space,
    cases: Sequence[Mapping[str, Any]],
    score: Score,
    table: OutcomeTable | None = None,
    *,
    most: int = MOST_CANDIDATES,
    **settings: Any,
) -> Enumeration:
    """Run every candidate of `space` on every case, whose inputs `cases` are.

    A node runs once for each of its options and each distinct value of its inputs: candidates that
    differ elsewhere, or whose values came out equal, share it. `settings`: of `OutcomeTable.run`.

    Raises: `BuildError` for more than `most` candidates, or without cases; as `OutcomeTable.run`.
    """
    if space.size > most or not cases:
        what = f"{space.size:,} candidates" if cases else "no cases"
        raise BuildError(f"{what}: cannot enumerate", hint="fewer knobs, a race, or some cases")
    own = OutcomeTable() if table is None else table
    refused: list[EditError] = []
    found = [CandidateScores(each) for each in space.candidates(flow, refused.append)]
    spent = Usage()
    for case in cases:
        for each in found:
            run = await own.run(each.candidate.flow, case, **settings)
            each.scores.append(score(case, run))
            each.whole += run.whole
            spent += run.spent
    whole = sum((each.whole for each in found), Usage())
    return Enumeration(tuple(found), tuple(refused), spent, whole)
