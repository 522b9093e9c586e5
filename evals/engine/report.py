"""The table for people, and how the figures stand to what was aimed at. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.engine.rows import Lookup, Row
from evals.engine.systems import SYSTEMS

_HEAD = (
    f"{'median ms':>11}{'p10 - p90':>23}{'CPU ms':>10}{'build ms':>10}"
    f"{'peak MB':>9}{'added MB':>10}{'x asyncio':>11}{'x langgraph':>13}"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A figure of weft and the most it may be."""

    case: str
    metric: str
    at_most: float
    why: str


TARGETS = (
    Target("chain_100", "ratio_to_asyncio", 2.5, "at most 2.5 times bare asyncio"),
    Target("fanout_1000", "ratio_to_asyncio", 4.0, "at most 4 times bare asyncio"),
    Target("chain_100", "ratio_to_langgraph", 1 / 8, "at least 8 times faster than LangGraph"),
    Target("fanout_1000", "ratio_to_langgraph", 1 / 8, "at least 8 times faster than LangGraph"),
    Target("skewed", "median_ms", 510.0, "within 2 % of 0.50 s"),
    Target("layered_10000", "bytes_per_node_residual", 0.02, "memory grows on a line, to 2 %"),
)


def table(rows: Sequence[Row]) -> str:
    """Every case with every system, then weft's memory, then the targets."""
    figures = Lookup(rows)
    lines: list[str] = []
    for case in dict.fromkeys(row.case for row in rows):
        measured = [name for name in SYSTEMS if figures(case, name, "median_ms") is not None]
        lines += [f"{case:16}{_HEAD}", *(_line(figures, case, system) for system in measured)]
        lines += _skipped(rows, case)
        lines.append("")
    return "\n".join([*lines, *_memory(figures), *_verdicts(figures), *_disturbed(figures)])


def _line(figures: Lookup, case: str, system: str) -> str:
    def cell(metric: str, spec: str, scale: float = 1.0) -> str:
        value = figures(case, system, metric)
        return "-" if value is None else format(value * scale, spec)

    between = f"{cell('p10_ms', ',.2f')} - {cell('p90_ms', ',.2f')}"
    return "".join(
        (
            f"  {system:14}",
            f"{cell('median_ms', ',.2f'):>11}",
            f"{between:>23}",
            f"{cell('cpu_ms', ',.2f'):>10}",
            f"{cell('build_ms', ',.1f'):>10}",
            f"{cell('peak_memory_bytes', ',.0f', 1e-6):>9}",
            f"{cell('added_memory_bytes', ',.1f', 1e-6):>10}",
            f"{cell('ratio_to_asyncio', ',.2f'):>11}",
            f"{cell('ratio_to_langgraph', ',.3f'):>13}",
        )
    )


def _skipped(rows: Sequence[Row], case: str) -> list[str]:
    return [
        f"  {row.system:14} {row.metric}"
        for row in rows
        if row.case == case and row.metric.startswith("skipped")
    ]


def _memory(figures: Lookup) -> list[str]:
    parts = ("", "_graph", "_run", "_residual")
    found = [figures("layered_10000", "weft", f"bytes_per_node{part}") for part in parts]
    total, graph, run, residual = found
    if total is None or graph is None or run is None or residual is None:
        return []
    line = f"weft: {total:,.0f} bytes per node ({graph:,.0f} the graph, {run:,.0f} the run)"
    return [f"{line}; off a straight line by {residual:.1%} at most, 10,000 to 40,000 nodes", ""]


def _verdicts(figures: Lookup) -> list[str]:
    return [_verdict(target, figures(target.case, "weft", target.metric)) for target in TARGETS]


def _verdict(target: Target, value: float | None) -> str:
    if value is None:
        verdict, figure = "UNKNOWN", "not measured"
    else:
        verdict = "met" if value <= target.at_most else "MISSED"
        figure = f"{value:.4g} <= {target.at_most:.4g}"
    return f"{verdict:8} {target.case} {target.metric}: {figure} ({target.why})"


def _disturbed(figures: Lookup) -> list[str]:
    """A warning when other programs took the processor away while a no-op graph ran."""
    wall, cpu = (figures("chain_100", "weft", metric) for metric in ("median_ms", "cpu_ms"))
    if wall is None or cpu is None or wall < 1.2 * cpu:
        return []
    return [
        f"the machine was busy: wall times are about {wall / cpu:.1f} times those of a quiet one"
    ]
