"""Draws the medians as grouped bars on a log scale. Needs matplotlib (extra `dev`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evals.engine.rows import Lookup, Row

_COLOURS = {
    "weft": "#0b6e4f",
    "asyncio": "#a3a3a3",
    "langgraph": "#d1495b",
    "pydantic_graph": "#e3a535",
    "hamilton": "#5b7db1",
}
_WIDTH = 0.86 / len(_COLOURS)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the plot to `path`, in the format of its suffix. Raises `ImportError`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = Lookup(rows)
    cases = list(dict.fromkeys(row.case for row in rows))
    figure, axes = plt.subplots(figsize=(12.5, 5.8), layout="constrained")
    for place, (system, colour) in enumerate(_COLOURS.items()):
        shift = (place - (len(_COLOURS) - 1) / 2) * _WIDTH
        medians = [figures(case, system, "median_ms") for case in cases]
        known = [(at, value) for at, value in enumerate(medians) if value is not None]
        bars = axes.bar(
            [at + shift for at, _ in known],
            [value for _, value in known],
            _WIDTH * 0.92,
            color=colour,
            yerr=_spread(figures, cases, system),
            error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
            label=system,
        )
        axes.bar_label(bars, [_short(value) for _, value in known], fontsize=8, padding=3)
        for at in set(range(len(cases))) - {at for at, _ in known}:
            axes.text(
                at + shift,
                0.02,
                f"{system}: no result",
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="bottom",
                rotation=90,
                fontsize=8,
                color=colour,
            )
    axes.set_yscale("log")
    axes.margins(x=0.01, y=0.08)
    axes.set_xticks(range(len(cases)), cases)
    axes.set_ylabel("milliseconds a run (log scale)")
    axes.set_title("Graphs of no-op async nodes: median of interleaved rounds, whiskers p10 to p90")
    axes.grid(axis="y", which="major", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(ncols=len(_COLOURS), loc="upper left", frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _spread(figures: Lookup, cases: Sequence[str], system: str) -> list[list[float]]:
    """How far the bars of `system` reach below and above its medians."""
    below, above = [], []
    for case in cases:
        low, middle, high = (
            figures(case, system, metric) for metric in ("p10_ms", "median_ms", "p90_ms")
        )
        if low is not None and middle is not None and high is not None:
            below.append(middle - low)
            above.append(high - middle)
    return [below, above]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
