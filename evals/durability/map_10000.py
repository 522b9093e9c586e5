"""A map over ten thousand items: what a node of it takes in the record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from evals.durability.rows import FULL, QUICK, measured, table
from evals.engine.plot import bars
from evals.engine.rows import Lookup

__all__ = ["panel", "rows", "table"]

_SYSTEMS: Final = ("weft_flow_none", "weft_flow", "langgraph_sqlite", "dbos")


def rows(quick: bool) -> list[dict[str, Any]]:
    """Time the systems that come to an end."""
    pace = replace(QUICK, least=1, most=1, limit_s=60.0) if quick else replace(FULL, least=3)
    return measured("map_10000", pace, _SYSTEMS)


def panel(axes: Any, figures: Lookup) -> None:
    """Draw the medians."""
    bars(axes, figures, "map_10000", _SYSTEMS)
