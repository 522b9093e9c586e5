"""The table for people, and how the figures stand to the limits. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evals.engine.limits import verdicts
from evals.engine.rows import Lookup, Row

_COLUMNS: Final = (
    ("median ms", "median_ms", ",.2f", 1.0, 12),
    ("p10", "p10_ms", ",.2f", 1.0, 11),
    ("p90", "p90_ms", ",.2f", 1.0, 11),
    ("CPU ms", "cpu_ms", ",.2f", 1.0, 11),
    ("build ms", "build_ms", ",.1f", 1.0, 10),
    ("added MB", "added_memory_bytes", ",.1f", 1e-6, 10),
    ("stored KB", "bytes", ",.1f", 1e-3, 11),
    ("x asyncio", "ratio_to_asyncio", ",.2f", 1.0, 11),
    ("(CPU)", "cpu_ratio_to_asyncio", ",.2f", 1.0, 9),
    ("x langgraph", "ratio_to_langgraph", ",.3f", 1.0, 13),
    ("x its sqlite", "ratio_to_langgraph_sqlite", ",.3f", 1.0, 14),
)


def table(rows: Sequence[Row]) -> str:
    """Every case with every system, then the engine's memory, then the limits."""
    figures = Lookup(rows)
    lines: list[str] = []
    cases = list(dict.fromkeys(row.case for row in rows))
    for case in cases:
        head = "".join(f"{title:>{width}}" for title, _, _, _, width in _COLUMNS)
        systems = dict.fromkeys(row.system for row in rows if row.case == case)
        measured = [s for s in systems if figures(case, s, "median_ms") is not None]
        lines += [f"{case:20}{head}", *(_line(figures, case, system) for system in measured)]
        lines += _skipped(rows, case)
        lines.append("")
    return "\n".join([*lines, *_memory(figures), *verdicts(figures, cases), *_disturbed(figures)])


def _line(figures: Lookup, case: str, system: str) -> str:
    cells = []
    for _, metric, spec, scale, width in _COLUMNS:
        value = figures(case, system, metric)
        cells.append(f"{'-' if value is None else format(value * scale, spec):>{width}}")
    return f"  {system:18}{''.join(cells)}"


def _skipped(rows: Sequence[Row], case: str) -> list[str]:
    return [
        f"  {row.system:18} {row.metric}"
        for row in rows
        if row.case == case and row.metric.startswith("skipped")
    ]


def _memory(figures: Lookup) -> list[str]:
    parts = ("", "_graph", "_run", "_residual")
    found = [figures("layered_10000", "weft_engine", f"bytes_per_node{part}") for part in parts]
    total, graph, run, residual = found
    if total is None or graph is None or run is None or residual is None:
        return []
    line = f"weft_engine: {total:,.0f} bytes per node ({graph:,.0f} the graph, {run:,.0f} the run)"
    return [f"{line}; off a straight line by {residual:.1%} at most, 10,000 to 40,000 nodes", ""]


def _disturbed(figures: Lookup) -> list[str]:
    """A warning when other programs took the processor away while a no-op graph ran."""
    wall, cpu = (figures("chain_100", "asyncio", metric) for metric in ("median_ms", "cpu_ms"))
    if wall is None or cpu is None or wall < 1.2 * cpu:
        return []
    return [
        f"the machine was busy: wall times are about {wall / cpu:.1f} times those of a quiet one"
    ]
