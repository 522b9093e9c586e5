"""Runs at each durability as rows, and the table for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from evals.engine.cases import case_named
from evals.engine.rounds import Pace, Timing, measure
from evals.engine.rows import Lookup, Row, timing_rows

SYSTEMS: Final = (
    "weft_flow_none",
    "weft_flow_exit",
    "weft_flow_async",
    "weft_flow",
    "weft_flow_power_safe",
    "weft_yaml",
    "langgraph_sqlite",
    "dbos",
    "prefect",
)
QUICK: Final = Pace(seconds=4.0, least=3, most=12, limit_s=20.0)
FULL: Final = Pace(seconds=45.0, least=7, most=40, limit_s=90.0)


def measured(case: str, pace: Pace, systems: Sequence[str] = SYSTEMS) -> list[dict[str, Any]]:
    """Time the systems on a case."""
    return rows_of(measure(case, systems, pace))


def rows_of(timing: Timing) -> list[dict[str, Any]]:
    """The rows of `evals.engine`, and the bytes of each node."""
    nodes = len(case_named(timing.case).tasks)
    rows = timing_rows(timing)
    rows += [
        Row(timing.case, system, "bytes_per_node", stored / nodes, "bytes")
        for system, stored in timing.stored.items()
    ]
    return [asdict(row) for row in rows]


def table(rows: Sequence[Row]) -> str:
    """One line for each system."""
    figures, case = Lookup(rows), rows[0].case
    told = [
        "| system | median ms (p10 to p90) | x LangGraph on SQLite | bytes a node |",
        "|---|---|---|---|",
    ]
    for system in dict.fromkeys(row.system for row in rows):
        middle = figures(case, system, "median_ms")
        if middle is None:
            why = next(row.metric for row in rows if row.system == system)
            told.append(f"| {system} | {why} | | |")
            continue
        low, high = figures(case, system, "p10_ms"), figures(case, system, "p90_ms")
        ratio = figures(case, system, "ratio_to_langgraph_sqlite")
        stored = figures(case, system, "bytes_per_node")
        told.append(
            f"| {system} | {middle:,.1f} ({low:,.1f} to {high:,.1f}) |"
            f" {'' if ratio is None else f'{ratio:.3f}'} |"
            f" {'' if stored is None else f'{stored:,.0f}'} |"
        )
    return "\n".join(told)
