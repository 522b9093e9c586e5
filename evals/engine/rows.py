"""Results as rows of one shape, and the statistics that make them. Knows no system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evals.engine.growth import Growth
    from evals.engine.rounds import Timing

REFERENCES: Final = ("asyncio", "langgraph", "langgraph_sqlite", "import_typer")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `value` is None in a row "skipped: why"."""

    case: str
    system: str
    metric: str
    value: float | None
    unit: str


def timing_rows(timing: Timing) -> list[Row]:
    """Wall times with their spread, CPU and build time, memory, stored bytes; medians over rounds
    of the ratios. Where there is no result, why.
    """
    rows = [
        Row(timing.case, system, f"skipped: {reason}", None, "")
        for system, reason in timing.skipped.items()
    ]
    for system, samples in timing.wall_ms.items():
        low, high = spread(samples)
        figures = [
            ("median_ms", median(samples), "ms"),
            ("p10_ms", low, "ms"),
            ("p90_ms", high, "ms"),
            ("cpu_ms", median(timing.cpu_ms[system]), "ms"),
            ("rounds", len(samples), "rounds"),
        ]
        ready = timing.ready.get(system)
        if ready is not None:
            figures.append(("build_ms", ready.build_ms, "ms"))
            figures.append(("added_memory_bytes", ready.added_bytes, "bytes"))
        if system in timing.stored:
            figures.append(("bytes", timing.stored[system], "bytes"))
        rows += [Row(timing.case, system, metric, value, unit) for metric, value, unit in figures]
        rows += _ratios(timing, system)
    return rows


def _ratios(timing: Timing, system: str) -> list[Row]:
    """Of wall times to every reference, and of CPU times, which others disturb less, to asyncio."""
    rows: list[Row] = []
    for other in REFERENCES:
        if other == system or other not in timing.wall_ms:
            continue
        ratio = _ratio(timing.wall_ms[system], timing.wall_ms[other])
        rows.append(Row(timing.case, system, f"ratio_to_{other}", ratio, "x"))
        if other == "asyncio":
            ratio = _ratio(timing.cpu_ms[system], timing.cpu_ms[other])
            rows.append(Row(timing.case, system, "cpu_ratio_to_asyncio", ratio, "x"))
    return rows


def _ratio(own: Sequence[float], others: Sequence[float]) -> float:
    return median(mine / other for mine, other in zip(own, others, strict=True))


def spread(samples: Sequence[float]) -> tuple[float, float]:
    """The 10th and the 90th percentile."""
    if len(samples) < 2:
        return samples[0], samples[0]
    tenths = quantiles(samples, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def growth_rows(growth: Growth) -> list[Row]:
    """The engine's bytes per node: in all, of the graph, of the run; how straight the line is."""
    case, system = "layered_10000", "weft_engine"
    return [
        Row(case, system, "bytes_per_node", growth.bytes_per_node, "bytes"),
        Row(case, system, "bytes_per_node_graph", growth.graph_bytes_per_node, "bytes"),
        Row(case, system, "bytes_per_node_run", growth.run_bytes_per_node, "bytes"),
        Row(case, system, "bytes_per_node_residual", growth.residual, "share"),
    ]


class Lookup:
    """Figures by case, system and metric."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._values = {(row.case, row.system, row.metric): row.value for row in rows}

    def __call__(self, case: str, system: str, metric: str) -> float | None:
        """The figure, or None where there is none."""
        return self._values.get((case, system, metric))

    def of(self, metric: str) -> dict[tuple[str, str], float]:
        """The figures of `metric` that there are, by case and system, in the order of the rows."""
        return {
            (case, system): value
            for (case, system, name), value in self._values.items()
            if name == metric and value is not None
        }
