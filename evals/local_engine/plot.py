"""The medians as bars. Reads rows only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evals.engine.rows import Lookup, Row

_CASES = ("stream_1", "streams_32", "prompt")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write tokens a second of every system to `path`, in the format of its suffix."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    value = Lookup(rows)
    figure, axes = plt.subplots(1, len(_CASES), figsize=(11, 4), layout="constrained")
    for axis, case in zip(axes, _CASES, strict=True):
        names = list(dict.fromkeys(row.system for row in rows if row.case == case))
        speeds = [value(case, name, "tokens_per_s") or 0.0 for name in names]
        bars = axis.barh(names[::-1], speeds[::-1], color="#0b6e4f")
        axis.bar_label(bars, fmt="%.0f", padding=3)
        axis.set_title(case)
        axis.set_xlabel("tokens a second")
        axis.margins(x=0.2)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
