"""The tables for people, and how the figures stand to what was aimed at. Measures nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evals.engine.rows import Lookup, Row
from evals.planning.orchestration.cases import CASES
from evals.planning.orchestration.systems import SYSTEMS

_COLUMNS: Final = (
    ("median s", "median_latency_s", ",.3f"),
    ("p10", "p10_latency_s", ",.2f"),
    ("p90", "p90_latency_s", ",.2f"),
    ("calls", "model_calls", ",.1f"),
    ("prompt", "prompt_tokens", ",.0f"),
    ("written", "completion_tokens", ",.0f"),
    ("x text", "speedup_to_react_text", ".2f"),
    ("p10", "speedup_to_react_text_p10", ".2f"),
    ("p90", "speedup_to_react_text_p90", ".2f"),
    ("x react", "speedup_to_react", ".2f"),
    ("x loop", "speedup_to_llmcompiler_loop", ".3f"),
    ("least", "speedup_to_llmcompiler_loop_least", ".3f"),
    ("real/virt", "real_over_virtual", ".3f"),
    ("tasks", "tasks", ",.0f"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A figure of the compiler and the least, or the most, that it may be."""

    case: str
    metric: str
    bound: float
    at_most: bool = False


_REACT: Final = "speedup_to_react_text"
_LOOP: Final = "speedup_to_llmcompiler_loop"
TARGETS: Final = (
    Target("movie", _REACT, 3.0),
    Target("parallelqa", _REACT, 1.8),
    Target("hotpotqa", _REACT, 1.8),
    Target("all cases", f"{_LOOP}_least", 1.0),
    Target("streaming", _LOOP, 1.2),
    Target("stall", "start_lag_ms", 5.0, at_most=True),
    Target("stall", "start_lag_ms_real", 5.0, at_most=True),
)


def table(rows: Sequence[Row]) -> str:
    """The orchestration cases side by side, everything else row by row, and the verdicts."""
    figures = Lookup(rows)
    lines: list[str] = []
    cases = [case for case in CASES if figures(case, "compiler", "tasks") is not None]
    for case in cases:
        lines.append(f"{case:24}" + "".join(f"{name:>10}" for name, _, _ in _COLUMNS))
        lines += [_line(figures, case, system) for system in SYSTEMS]
        lines.append("")
    lines += [_single(row) for row in rows if row.case not in cases]
    return "\n".join([*lines, "", *_verdicts(figures)])


def _line(figures: Lookup, case: str, system: str) -> str:
    cells = []
    for _, metric, spec in _COLUMNS:
        value = figures(case, system, metric)
        cells.append(f"{'-' if value is None else format(value, spec):>10}")
    return f"  {system:22}{''.join(cells)}"


def _single(row: Row) -> str:
    value = "" if row.value is None else f"{row.value:,.3f}"
    return f"{row.case:48}{row.system:28} {row.metric:42}{value:>12}  {row.unit}".rstrip()


def _verdicts(figures: Lookup) -> Iterable[str]:
    for target in TARGETS:
        value = figures(target.case, "compiler", target.metric)
        if value is not None:
            met = value <= target.bound if target.at_most else value >= target.bound
            sign = "<=" if target.at_most else ">="
            said = f"{target.case} compiler {target.metric}: {value:.3f} {sign} {target.bound:g}"
            yield f"{'met' if met else 'MISSED':8}{said}"
