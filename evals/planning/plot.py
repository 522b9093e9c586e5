"""Draws latencies, and the speed-up over the speed of the model. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evals.engine.rows import Lookup, Row
from evals.planning.orchestration.sweeps import SWEPT, TOKEN_MS, per_token

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = {
    "react": "#e59aa4",
    "react_text": "#d1495b",
    "divide": "#e3a535",
    "llmcompiler_loop_batch": "#c4cbd8",
    "llmcompiler_loop": "#5b7db1",
    "compiler": "#0b6e4f",
}
_LINES: Final = {"movie": "#0b6e4f", "parallelqa": "#5b7db1", "hotpotqa": "#d1495b"}
_REACT: Final = "speedup_to_react_text"
_LOOP: Final = "speedup_to_llmcompiler_loop"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot to `path`, in the format of its suffix. Raises `ImportError`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    figures = Lookup(rows)
    _latencies(left, figures)
    _speedups(middle, figures)
    _pauses(right, rows)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _latencies(axes: Axes, figures: Lookup) -> None:
    width = 0.86 / len(_COLOURS)
    for place, (system, colour) in enumerate(_COLOURS.items()):
        shift = (place - (len(_COLOURS) - 1) / 2) * width
        values = [figures(case, system, "median_latency_s") or 0.0 for case in SWEPT]
        at = [n + shift for n in range(len(SWEPT))]
        bars = axes.bar(at, values, width * 0.92, color=colour, label=system)
        axes.bar_label(bars, [f"{value:.1f}" for value in values], fontsize=7, padding=2)
    axes.set_xticks(range(len(SWEPT)), SWEPT)
    axes.set_ylabel("seconds a task, median")
    axes.set_title("Gold plans, 50 tokens a second, tools of 0.3 s")
    axes.legend(frameon=False, fontsize=8)


def _speedups(axes: Axes, figures: Lookup) -> None:
    for case, colour in _LINES.items():
        values = [figures(name, "compiler", _REACT) for name in per_token(case)]
        known = [(ms, value) for ms, value in zip(TOKEN_MS, values, strict=True) if value]
        axes.plot(*zip(*known, strict=True), "o-", color=colour, label=case) if known else None
    axes.axhline(1.0, color="#8a8a8a", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks(TOKEN_MS, [str(ms) for ms in TOKEN_MS])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("milliseconds a token")
    axes.set_ylabel("times faster than ReAct as text, median of tasks")
    axes.set_title("compiler beside ReAct as text")
    axes.legend(frameon=False, fontsize=8)


def _pauses(axes: Axes, rows: Sequence[Row]) -> None:
    for speed, colour in (("fast", "#0b6e4f"), ("medium", "#5b7db1")):
        before = f"streaming, {speed} model, pause of "
        found = [
            (int(row.case.removeprefix(before).split()[0]), row.value)
            for row in rows
            if row.case.startswith(before) and row.metric == _LOOP and row.value is not None
        ]
        if found:
            axes.plot(*zip(*found, strict=True), "o-", color=colour, label=f"{speed} model")
    axes.axhline(1.0, color="#8a8a8a", linewidth=1)
    axes.set_xlabel("tokens of thought in the middle of the plan")
    axes.set_ylabel("times faster than LLMCompiler's loop, median of tasks")
    axes.set_title("A chain, a pause, single calls")
    axes.legend(frameon=False, fontsize=8)
