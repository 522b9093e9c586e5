"""The tables for people, and how the figures stand to what was aimed at. Measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from types import ModuleType

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Skipped
from evals.reasoning.sections import Found, module

Modules = Callable[[str], ModuleType]
"""By the name of a section: its module. Raises: `Skipped`."""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure of a system, and the least, or the most, that it may be."""

    case: str
    system: str
    metric: str
    bound: float
    at_most: bool = False


def report(found: Sequence[Found], modules: Modules = module) -> str:
    """Each section's own table, or row by row where it has none, and the verdicts."""
    figures = Lookup(chain.from_iterable(rows for _, rows in found))
    verdicts = list(chain.from_iterable(_verdicts(name, figures, modules) for name, _ in found))
    sections = [_section(name, rows, modules) for name, rows in found]
    return "\n\n".join([*sections, "\n".join(verdicts)])


def row_by_row(rows: Iterable[Row]) -> str:
    """One line for each row."""
    return "\n".join(_line(row) for row in rows)


def _section(name: str, rows: Sequence[Row], modules: Modules) -> str:
    known = [row for row in rows if row.value is not None]
    own = getattr(modules(name), "table", None) if known else None
    return f"## {name}\n\n{own(rows) if own else row_by_row(rows)}"


def _line(row: Row) -> str:
    value = "" if row.value is None else f"{row.value:,.3f}"
    return f"{row.case:32}{row.system:24}{row.metric:36}{value:>14}  {row.unit}".rstrip()


def _verdicts(section: str, figures: Lookup, modules: Modules) -> Iterable[str]:
    try:
        targets: Sequence[Target] = getattr(modules(section), "TARGETS", ())
    except Skipped:
        return
    for target in targets:
        value = figures(target.case, target.system, target.metric)
        if value is not None:
            met = value <= target.bound if target.at_most else value >= target.bound
            sign = "<=" if target.at_most else ">="
            of = f"{target.case} {target.system} {target.metric}"
            yield f"{'met' if met else 'MISSED':8}{of}: {value:.3f} {sign} {target.bound:g}"
