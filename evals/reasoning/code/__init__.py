"""Code: which program to choose, and what a small real model makes of twelve exercises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort, Skipped
from evals.reasoning.code.models import measure as measure_model
from evals.reasoning.code.selecting import SKILLS
from evals.reasoning.code.selecting import measure as measure_choices
from evals.reasoning.report import Target
from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYSTEMS: Final = ("random", "first", "sieve_random", "majority", "tests", "sstar", "oracle")
TARGETS: Final = (
    Target("right_20", "sstar", "accuracy_over_sieve_random", 0.1),
    Target("right_20", "sstar", "accuracy_over_majority", 0.0),
)


async def run(effort: Effort) -> list[Row]:
    """The rows of this section. Raises: `Skipped` where programs cannot be run safely."""
    sandbox = CodeSandbox(SandboxLimits(wall_s=10.0, memory_bytes=256 * 1024 * 1024))
    try:
        await sandbox.run("")
    except SandboxError as error:
        raise Skipped(str(error)) from error
    rows = await measure_choices(effort, sandbox)
    return [*rows, *over(rows), *await measure_model(effort, sandbox)]


def over(rows: Sequence[Row]) -> list[Row]:
    """By how much S* is better than drawing lots among those that pass, and than the majority."""
    figures = Lookup(rows)
    found = []
    for case in SKILLS:
        for other in ("sieve_random", "majority"):
            own, theirs = figures(case, "sstar", "accuracy"), figures(case, other, "accuracy")
            if own is not None and theirs is not None:
                found.append(Row(case, "sstar", f"accuracy_over_{other}", own - theirs, "share"))
    return found


def table(rows: Sequence[Row]) -> str:
    """Accuracy and calls of each way to choose; then the real model."""
    figures = Lookup(rows)
    lines = [f"{'accuracy (calls)':16}" + "".join(f"{case:>22}" for case in SKILLS)]
    for system in SYSTEMS:
        cells = []
        for case in SKILLS:
            right, calls = (figures(case, system, name) for name in ("accuracy", "requests"))
            cells.append("" if right is None else f"{right:.3f} ({calls or 0:.1f})")
        lines.append(f"{system:16}" + "".join(f"{cell:>22}" for cell in cells))
    lines.append("")
    for row in rows:
        if row.case not in SKILLS:
            value = "" if row.value is None else f"{row.value:.3f} {row.unit}"
            lines.append(f"{row.case:28}{row.system:28}{row.metric:24}{value}".rstrip())
    return "\n".join(lines)


def panel(axes: Axes, figures: Lookup) -> None:
    """Accuracy of the ways to choose, at each skill of the programmer."""
    for place, case in enumerate(SKILLS):
        values = [figures(case, system, "accuracy") or 0.0 for system in SYSTEMS]
        places = [index + 0.27 * (place - 1) for index in range(len(SYSTEMS))]
        axes.bar(places, values, width=0.25, label=case.replace("_", " "))
    axes.set_xticks(range(len(SYSTEMS)), SYSTEMS, rotation=30, ha="right")
    axes.set_ylabel("accuracy")
    axes.set_title("choosing one of 8 programs")
    axes.legend(frameon=False, fontsize=8)
