"""The rows of a timed case, and how they are told and drawn. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from evals.durability.cases import NODES
from evals.durability.rounds import Timing
from evals.durability.systems import SYSTEMS
from evals.engine.rows import Lookup, Row, spread

REFERENCE = "langgraph_sqlite"


def rows_of(case: str, timing: Timing) -> list[dict[str, Any]]:
    """Medians with their spread, bytes for each node, and the ratio to LangGraph by round."""
    rows: list[dict[str, Any]] = [
        _row(case, system, f"skipped: {reason}", None, "")
        for system, reason in timing.skipped.items()
    ]
    reference = timing.wall_ms.get(REFERENCE)
    for system, samples in timing.wall_ms.items():
        low, high = spread(samples)
        rows += [
            _row(case, system, "median_ms", median(samples), "ms"),
            _row(case, system, "p10_ms", low, "ms"),
            _row(case, system, "p90_ms", high, "ms"),
            _row(case, system, "rounds", len(samples), "rounds"),
            _row(case, system, "bytes_per_node", timing.run_bytes[system] / NODES[case], "bytes"),
        ]
        if reference is not None and system != REFERENCE:
            ratio = median(own / other for own, other in zip(samples, reference, strict=True))
            rows.append(_row(case, system, "ratio_to_langgraph", ratio, "x"))
    return rows


def table(rows: Sequence[Row]) -> str:
    """One line for each system."""
    figures = Lookup(rows)
    told = ["| system | median ms (p10 to p90) | x LangGraph | bytes a node |", "|---|---|---|---|"]
    case = rows[0].case
    for system in SYSTEMS:
        middle = figures(case, system, "median_ms")
        if middle is None:
            continue
        low, high = figures(case, system, "p10_ms"), figures(case, system, "p90_ms")
        ratio = figures(case, system, "ratio_to_langgraph")
        stored = figures(case, system, "bytes_per_node")
        told.append(
            f"| {system} | {middle:,.1f} ({low:,.1f} to {high:,.1f}) |"
            f" {'' if ratio is None else f'{ratio:.3f}'} | {stored:,.0f} |"
        )
    return "\n".join(told)


def bars(axes: Any, figures: Lookup, case: str) -> None:
    """The medians of a case, on a logarithmic axis."""
    known = [(s, figures(case, s, "median_ms")) for s in SYSTEMS]
    shown = [(system, value) for system, value in known if value is not None]
    axes.barh([system for system, _ in shown], [value for _, value in shown])
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("median ms of a run")
    axes.set_title(case)


def _row(case: str, system: str, metric: str, value: float | None, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
