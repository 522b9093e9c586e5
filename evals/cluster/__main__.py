"""`python -m evals.cluster [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evals.cluster import chaos, dispatch
from evals.cluster.victims import NODES
from evals.engine.rows import Row
from evals.results import environment, title, write_results
from evals.sectioned import arguments
from weft.cluster.nodes import ClusterStarter
from weft.cluster.process import BRIDGES

MEASURED: Final = {
    "dispatch": dispatch.map_rows,
    "single": dispatch.single_rows,
    "chain": dispatch.chain_rows,
    "results": dispatch.result_rows,
    "ray_tasks": dispatch.task_rows,
}
SECTIONS: Final = (*MEASURED, "chaos")


def main() -> None:
    """Measure, kill, and print."""
    asked = arguments("cluster", "Tools of weft on a Ray cluster.", SECTIONS)
    sizes = dispatch.QUICK if asked.quick else dispatch.FULL
    rows: list[Row] = []
    if set(asked.only) - {"chaos"}:
        rows += measured(asked.only, sizes)
    if "chaos" in asked.only:
        rows += chaos.chaos_rows(chaos.QUICK if asked.quick else chaos.FULL)
    about = environment(["ray"])
    print(f"\n{title(about)}\n")
    print(table(rows))
    if asked.json:
        write_results(asked.json, rows, about)
    if asked.plot:
        draw(rows, asked.plot)


def measured(only: Sequence[str], sizes: dispatch.Sizes) -> Iterator[Row]:
    """The sections `only` on a cluster of a head and three nodes, which is ended."""
    starter = ClusterStarter()
    try:
        starter.head()
        for _ in range(NODES):
            starter.node()
        cluster = starter.cluster()
        for name, section in MEASURED.items():
            if name in only:
                yield from section(cluster, sizes)
    finally:
        BRIDGES.close()
        starter.cluster().stop()


def table(rows: Sequence[Row]) -> str:
    """A table for people."""
    lines = ["| case | system | metric | value |", "|---|---|---|---|"]
    lines += [
        f"| {row.case} | {row.system} | {row.metric} | {row.value:.4g} {row.unit} |" for row in rows
    ]
    return "\n".join(lines)


def draw(rows: Sequence[Row], file: Path) -> None:
    """The cost of an item, by system."""
    from matplotlib.figure import Figure

    found = [row for row in rows if row.metric == "item_ms"]
    figure = Figure(figsize=(6, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.barh([row.system for row in found], [float(row.value) for row in found])
    axes.set_xscale("log")
    axes.set_xlabel("ms an item, a map of no-ops")
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
