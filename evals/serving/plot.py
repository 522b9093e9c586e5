"""Draws the latencies of programs and what each mechanism is worth. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evals.engine.rows import Lookup, Row
from evals.serving.rows import CASE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"plain": "#8a8a8a", "plain_cancel": "#e3a535", "weft": "#0b6e4f"}
_OTHER = "#5b7db1"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot to `path`, in the format of its suffix. Raises `ImportError`."""
    panels = (lambda axes: _cumulative(axes, rows), lambda axes: _ratios(axes, rows))
    draw_panels(panels, path)


def draw_panels(panels: Sequence[Callable[[Axes], None]], path: Path) -> None:
    """Write the panels side by side to `path`. Raises `ImportError`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    width = 6.25 * len(panels)
    figure, places = plt.subplots(1, len(panels), figsize=(width, 5.2), layout="constrained")
    for axes, panel in zip(places, panels, strict=True):
        panel(axes)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _cumulative(axes: Axes, rows: Sequence[Row]) -> None:
    figures = Lookup(rows)
    for system, colour in _COLOURS.items():
        values = [
            row.value
            for row in rows
            if row.case == "program_latency" and row.system == system and row.value is not None
        ]
        if values:
            mean = figures(CASE, system, "mean_program_latency_s") or 0.0
            shares = [(place + 1) / len(values) for place in range(len(values))]
            axes.step(
                values,
                shares,
                where="post",
                color=colour,
                linewidth=2,
                label=f"{system}, mean {mean:.1f} s",
            )
    axes.set_xlabel("seconds from a program's arrival to its result")
    axes.set_ylabel("share of programs")
    axes.set_title("Programs that have their result")
    axes.set_ylim(0, 1.01)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    axes.legend(loc="lower right", frameon=False)


def _ratios(axes: Axes, rows: Sequence[Row]) -> None:
    metric = "mean_program_latency_s_ratio"
    found = {row.system: row.value for row in rows if row.case == CASE and row.metric == metric}
    systems = [name for name, value in found.items() if value is not None]
    figures = Lookup(rows)
    for place, name in enumerate(systems):
        middle = found[name] or 0.0
        least = figures(CASE, name, f"{metric}_least") or middle
        most = figures(CASE, name, f"{metric}_most") or middle
        axes.barh(place, middle, 0.7, color=_COLOURS.get(name, _OTHER))
        axes.plot([least, most], [place, place], color="#333333", linewidth=1)
        axes.text(max(most, middle) + 0.02, place, f"{middle:.2f}", va="center", fontsize=9)
    axes.axvline(1.0, color="#8a8a8a", linewidth=1)
    axes.set_yticks(range(len(systems)), systems)
    axes.invert_yaxis()
    axes.set_xlabel("mean program latency, as a share of plain's in the same round")
    axes.set_title("What each mechanism is worth")
