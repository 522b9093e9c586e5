"""What the rows of the list operations come to: a line a decoder, and a picture. Measures nothing.

Operations with one right answer and those with several are kept apart: the first show what a
decoder saves, the second what that costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, Final

from evals.engine.rows import Lookup, Row
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, FREE, LANGUAGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TASKS: Final = tuple(LANGUAGES)
SIZES: Final = (3, 4, 5, 6)
ADAPTIVE: Final = "adaptive"
_COLUMNS: Final = ("validity", "tokens_per_forward", "wall_ratio", "wall_to_twin")
_LINES: Final = {
    "threshold": ("threshold_0.9", "threshold_0.7", "threshold_0.5"),
    "factor": ("factor_1.0", "factor_2.0"),
    "entropy bound": ("entropy_bound_0.01", "entropy_bound_0.5"),
}
_POINTS: Final = {
    "sequential": -1,
    "ar_twin": -10,
    "self_speculative": -3,
    "random": -3,
    "dilated": -3,
    "wino": -3,
    "klass": -3,
    "learn2pd": -3,
    "dparallel": -3,
}
"""Those with their name beside them, so much higher."""


def mean(figures: Lookup, system: str, metric: str, tasks: Sequence[str]) -> float | None:
    """Over `tasks`; None where one is missing."""
    found = [figures(f"list_{task}", system, metric) for task in tasks]
    known = [value for value in found if value is not None]
    return fmean(known) if len(known) == len(found) else None


def place(value: float | None) -> float:
    """Where it is drawn: nowhere, if it is not known."""
    return nan if value is None else value


def table(rows: Sequence[Row]) -> str:
    """Means of each decoder over operations with one right answer, and over those with several."""
    figures = Lookup(rows)
    names = dict.fromkeys(row.system for row in rows if row.case == f"list_{TASKS[0]}")
    groups = (("one", DETERMINISTIC), ("several", FREE))
    heads = [f"{metric} {name}" for name, _ in groups for metric in _COLUMNS]
    lines = [f"{'':20}" + "".join(f"{head:>27}" for head in heads)]
    for name in names:
        cells = [mean(figures, name, metric, of) for _, of in groups for metric in _COLUMNS]
        told = "".join(f"{'-' if cell is None else f'{cell:.3f}':>27}" for cell in cells)
        lines.append(f"{name:20}{told}")
    adaptive = [
        f"{row.case} {row.metric}: {row.value:.3f} {row.unit}"
        for row in rows
        if row.system == ADAPTIVE and not row.case.startswith(("list_", "oracle_"))
    ]
    return "\n".join([*lines, *adaptive])


def panel(axes: Axes, figures: Lookup) -> None:
    """Validity over tokens a pass where several answers are right: what haste costs."""

    def at(system: str) -> tuple[float, float]:
        passes = mean(figures, system, "tokens_per_forward", FREE)
        return place(passes), place(mean(figures, system, "validity", FREE))

    for label, systems in _LINES.items():
        xs, ys = zip(*map(at, systems), strict=True)
        axes.plot(xs, ys, "o-", label=label)
    for system, up in _POINTS.items():
        x, y = at(system)
        axes.plot(x, y, "o", color="tab:gray")
        if not isnan(x + y):
            axes.annotate(system, (x, y), (5, up), textcoords="offset points", fontsize=8)
    axes.plot(*at(ADAPTIVE), "*", color="tab:red", ms=14, label=ADAPTIVE)
    axes.set_xlabel("tokens a pass")
    axes.set_ylabel("valid answers")
    axes.set_title(f"{len(FREE)} operations with several right answers")
    axes.margins(x=0.15)
    axes.legend(fontsize=8)
