"""Draws the medians of each case as bars on a log scale. Needs matplotlib (extra `dev`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.engine.rows import Lookup, Row

_OWN = "#0b6e4f"
_OTHERS = "#8aa0b8"
_COLUMNS = 4


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot to `path`, in the format of its suffix. Raises `ImportError`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    measured = [row for row in rows if row.metric == "median_ms"]
    cases = list(dict.fromkeys(row.case for row in measured))
    columns = min(_COLUMNS, max(1, len(cases)))
    lines = max(1, -(-len(cases) // columns))
    size = (4.6 * columns, 3.4 * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    panels = [panel for line in axes for panel in line]
    for panel, case in zip(panels, cases, strict=False):
        bars(panel, Lookup(rows), case, [row.system for row in measured if row.case == case])
    for panel in panels[len(cases) :]:
        panel.set_visible(False)
    figure.suptitle("Median milliseconds of a run (log scale), whiskers p10 to p90")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def bars(axes: Any, figures: Lookup, case: str, systems: Sequence[str]) -> None:
    """The medians of a case, one bar for each system that has one."""
    systems = [name for name in systems if figures(case, name, "median_ms") is not None]
    low, middle, high = (
        [figures(case, system, metric) or 0.0 for system in systems]
        for metric in ("p10_ms", "median_ms", "p90_ms")
    )
    below = [max(0.0, m - p) for m, p in zip(middle, low, strict=True)]
    above = [max(0.0, p - m) for m, p in zip(middle, high, strict=True)]
    drawn = axes.barh(
        systems,
        middle,
        xerr=[below, above],
        color=[_OWN if system.startswith("weft") else _OTHERS for system in systems],
        error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
    )
    axes.bar_label(drawn, [_short(value) for value in middle], fontsize=7, padding=3)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    axes.set_title(case, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
