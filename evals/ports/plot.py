"""Lines and times of the programs, weft's beside its peers'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from evals.engine.rows import Lookup, Row
from evals.ports.jobs import JOBS

mpl.use("Agg")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Two bars a job: lines of code, and milliseconds on a logarithmic axis."""
    from matplotlib import pyplot as plt

    value = Lookup(rows)
    figure, axes = plt.subplots(2, 1, figsize=(10, 7), layout="constrained")
    jobs = list(JOBS)
    for axis, metric, label in zip(
        axes, ("code_lines", "median_ms"), ("lines of code", "median, ms"), strict=True
    ):
        for at, system in enumerate(("weft", "langgraph", "pydantic")):
            found = [value(job, system, metric) or 0 for job in jobs]
            axis.bar([place + 0.27 * at for place in range(len(jobs))], found, 0.25, label=system)
        axis.set_xticks([place + 0.27 for place in range(len(jobs))], jobs)
        axis.set_ylabel(label)
        axis.legend()
    axes[1].set_yscale("log")
    figure.savefig(path, dpi=110)
    plt.close(figure)
