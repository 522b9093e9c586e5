"""How weft's memory grows with the graph: traced bytes of layered graphs of three sizes.

Usage: `python -m evals.engine.growth`; prints one JSON object. Tracing makes everything slow, so
nothing is timed here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression

from evals.engine.cases import layered
from evals.engine.systems import load

SIZES = (10_000, 20_000, 40_000)


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes per node as slopes over `SIZES`; `residual` is the largest deviation from the line, as
    a share of the measured value. The run's part is its peak beyond the graph.
    """

    bytes_per_node: float
    graph_bytes_per_node: float
    run_bytes_per_node: float
    residual: float


async def traced(nodes: int) -> tuple[int, int]:
    """Bytes of the built graph, and the peak beyond it while it runs once."""
    case, build = layered("growth", nodes, nodes // 100), load("weft_engine")
    gc.collect()
    tracemalloc.start()
    try:
        program = build("weft_engine", case, Path())
        gc.collect()
        graph, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        running = program()
        assert running is not None
        await running
        return graph, tracemalloc.get_traced_memory()[1] - graph
    finally:
        tracemalloc.stop()


def fit(measured: list[tuple[int, int]]) -> Growth:
    """The lines through the (graph, run) bytes measured at `SIZES`."""
    totals = [graph + run for graph, run in measured]
    slope, start = linear_regression(SIZES, totals)
    off = [abs(start + slope * n - total) / total for n, total in zip(SIZES, totals, strict=True)]
    graphs, runs = zip(*measured, strict=True)
    return Growth(
        slope,
        linear_regression(SIZES, graphs).slope,
        linear_regression(SIZES, runs).slope,
        max(off),
    )


async def main() -> None:
    """Measure and print."""
    await traced(100)
    print(json.dumps(asdict(fit([await traced(nodes) for nodes in SIZES]))))


if __name__ == "__main__":
    asyncio.run(main())
