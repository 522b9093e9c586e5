"""What a study would be over, before anything runs: knobs, splits, what its test can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.evaluation.case import SHARES
from weft.evaluation.dataset import DataLike
from weft.evaluation.evaluate import program_of
from weft.evaluation.metrics import MetricsLike
from weft.evaluation.statistics import detectable_difference
from weft.optimisation.data_size import shortage
from weft.optimisation.decide import DISCORDANCE, LEAST_CASES
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.opening import without_split
from weft.optimisation.propose.registry import ProposerLike, check_proposers, declared_proposers
from weft.optimisation.space import Space, declared_space, discovered_space
from weft.optimisation.study import StudyCases
from weft.optimisation.study_options import CALLS, StudyOptions, parse_budget
from weft.workflow.document.spec.optimise import OptimiseSpec


@dataclass(frozen=True, slots=True)
class StudyPreview:
    """Knobs and their combinations, cases of each split, and the most that may be spent.

    `detectable`: the smallest difference of a share of right answers that the held-out cases show
    with a power of 80 %, where answers of three cases in ten differ; None: none. `shortage`: why
    none, and how many cases it takes; else empty.
    """

    space: Space
    declared: bool
    splits: Mapping[str, int]
    replicates: int
    metrics: Sequence[str]
    budget: Mapping[str, Any]
    detectable: float | None
    shortage: str = ""


def preview_study(
    flow: AnyFlow,
    data: DataLike | None = None,
    metric: MetricsLike | None = None,
    *,
    budget: object = None,
    replicates: int | None = None,
    shares: Sequence[int] = SHARES,
    goal: str | None = None,
    keep: Mapping[str, float] | None = None,
    proposers: Sequence[ProposerLike] = (),
) -> StudyPreview:
    """What `optimise` with these arguments would be over. Nothing runs.

    Raises: `BuildError`, `InputError` as `optimise`.
    """
    spec = flow.document.optimise or OptimiseSpec()
    StudyOptions(**{"goal": goal} if goal else {}, keep=keep or {})  # type: ignore[arg-type]
    check_proposers(proposers or declared_proposers(spec))
    program = program_of(
        without_split(flow.unit), data, metric, replicates=replicates, shares=shares
    )
    sizes = StudyCases.of(program.data, shares=shares).sizes
    declared = bool(spec.knobs)
    space = declared_space(flow.document) if declared else discovered_space(flow.document)
    held_out = sizes["held_out"]
    return StudyPreview(
        space,
        declared,
        {name: count for name, count in sizes.items() if name != "canaries"},
        program.replicates,
        program.names,
        {"calls": CALLS, **parse_budget(spec.budget if budget is None else budget)},
        detectable_difference(held_out, DISCORDANCE) if held_out >= LEAST_CASES else None,
        shortage(sizes, shares),
    )
