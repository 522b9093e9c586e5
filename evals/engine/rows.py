"""Results as rows of one shape, and the statistics that make them. Knows no system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from evals.engine.growth import Growth
from evals.engine.rounds import Timing

REFERENCES = ("asyncio", "langgraph")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `value` is None in a row "skipped: why"."""

    case: str
    system: str
    metric: str
    value: float | None
    unit: str


def timing_rows(timing: Timing) -> list[Row]:
    """Wall times with their spread, CPU and build time; medians over rounds of the ratios.

    Ratios are of CPU times, which other programs do not disturb; where tasks sleep, of wall times.
    """
    rows: list[Row] = []
    compared = timing.wall_ms if timing.sleeps else timing.cpu_ms
    for system, samples in timing.wall_ms.items():
        low, high = spread(samples)
        for metric, value in (
            ("median_ms", median(samples)),
            ("p10_ms", low),
            ("p90_ms", high),
            ("cpu_ms", median(timing.cpu_ms[system])),
            ("build_ms", timing.build_ms[system]),
        ):
            rows.append(Row(timing.case, system, metric, value, "ms"))
        rows.append(Row(timing.case, system, "rounds", len(samples), "rounds"))
        for other in REFERENCES:
            if other in compared and other != system:
                pairs = zip(compared[system], compared[other], strict=True)
                ratio = median(own / others for own, others in pairs)
                rows.append(Row(timing.case, system, f"ratio_to_{other}", ratio, "x"))
    return rows


def spread(samples: Sequence[float]) -> tuple[float, float]:
    """The 10th and the 90th percentile."""
    if len(samples) < 2:
        return samples[0], samples[0]
    tenths = quantiles(samples, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def memory_rows(case: str, system: str, peak: int, added: int) -> list[Row]:
    """The peak of the process, and what of it the graph and its run added."""
    return [
        Row(case, system, "peak_memory_bytes", peak, "bytes"),
        Row(case, system, "added_memory_bytes", added, "bytes"),
    ]


def growth_rows(growth: Growth) -> list[Row]:
    """weft's bytes per node: in all, of the graph, of the run; and how straight the line is."""
    case = "layered_10000"
    return [
        Row(case, "weft", "bytes_per_node", growth.bytes_per_node, "bytes"),
        Row(case, "weft", "bytes_per_node_graph", growth.graph_bytes_per_node, "bytes"),
        Row(case, "weft", "bytes_per_node_run", growth.run_bytes_per_node, "bytes"),
        Row(case, "weft", "bytes_per_node_residual", growth.residual, "share"),
    ]


class Lookup:
    """Figures by case, system and metric."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._values = {(row.case, row.system, row.metric): row.value for row in rows}

    def __call__(self, case: str, system: str, metric: str) -> float | None:
        """The figure, or None where there is none."""
        return self._values.get((case, system, metric))
