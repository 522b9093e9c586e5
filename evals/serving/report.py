"""The tables for people, and how the figures stand to what was aimed at. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence

from evals.engine.rows import Lookup, Row
from evals.serving.rows import CASE

_COLUMNS = (
    ("mean", "mean_program_latency_s", ",.1f"),
    ("p50", "p50_program_latency_s", ",.1f"),
    ("p95", "p95_program_latency_s", ",.1f"),
    ("p99", "p99_program_latency_s", ",.1f"),
    ("makespan", "makespan_s", ",.1f"),
    ("tokens/s", "tokens_per_s", ",.0f"),
    ("hit rate", "prefix_hit_rate", ".2f"),
    ("prefilled", "server_prompt_tokens", ",.0f"),
    ("wasted", "wasted_tokens", ",.0f"),
    ("backlog", "backlog", ",.0f"),
    ("rounds", "rounds", ",.0f"),
    ("same", "outputs_equal", ".3f"),
    ("x mean", "mean_program_latency_s_ratio", ".2f"),
    ("least", "mean_program_latency_s_ratio_least", ".2f"),
    ("most", "mean_program_latency_s_ratio_most", ".2f"),
    ("x p99", "p99_program_latency_s_ratio", ".2f"),
)
_TARGETS = (("mean_program_latency_s_ratio", 0.7), ("p99_program_latency_s_ratio", 1.0))


def table(rows: Sequence[Row]) -> str:
    """The systems side by side, the other cases row by row, and the verdict."""
    lines: list[str] = []
    figures = Lookup(rows)
    cases = list(dict.fromkeys(row.case for row in rows if row.case.startswith(CASE)))
    for case in cases:
        systems = list(dict.fromkeys(row.system for row in rows if row.case == case))
        head = "".join(f"{name:>10}" for name, _, _ in _COLUMNS)
        lines += [f"{case:26}{head}", *(_line(figures, case, name) for name in systems), ""]
        lines += [*(_each_round(rows, case, name) for name in systems if name == "weft"), ""]
    for row in rows:
        if row.case not in {*cases, "program_latency"}:
            value = "-" if row.value is None else f"{row.value:,.3f}"
            lines.append(f"{row.case:18}{row.system:34}{row.metric:28}{value:>14}  {row.unit}")
    return "\n".join([*lines, *_verdicts(figures)])


def _each_round(rows: Sequence[Row], case: str, system: str) -> str:
    """The ratio of every round: a median alone does not say how far they lie apart."""
    metric = "mean_program_latency_s_ratio_round_"
    found = [
        row.value
        for row in rows
        if (row.case, row.system) == (case, system) and row.metric.startswith(metric)
    ]
    shown = ", ".join(f"{value:.2f}" for value in found if value is not None)
    return f"  {system}, mean of plain's in each round: {shown}"


def _line(figures: Lookup, case: str, system: str) -> str:
    cells = []
    for _, metric, spec in _COLUMNS:
        value = figures(case, system, metric)
        cells.append(f"{'-' if value is None else format(value, spec):>10}")
    return f"  {system:24}{''.join(cells)}"


def _verdicts(figures: Lookup) -> list[str]:
    found = []
    for metric, at_most in _TARGETS:
        value = figures(CASE, "weft", metric)
        if value is not None:
            verdict = "met" if value <= at_most else "MISSED"
            found.append(f"{verdict:8}{CASE} weft {metric}: {value:.2f} <= {at_most:.2f}")
    return found
