"""A step, a thousand that wait for it side by side, and one that waits for all."""

from __future__ import annotations

from typing import Any

from evals.durability.rows import FULL, QUICK, SYSTEMS, measured, table
from evals.engine.plot import bars
from evals.engine.rows import Lookup
from evals.reasoning.report import Target

__all__ = ["TARGETS", "panel", "rows", "table"]

TARGETS = (Target("fanout_1000", "weft_flow", "ratio_to_langgraph_sqlite", 1 / 8, at_most=True),)


def rows(quick: bool) -> list[dict[str, Any]]:
    """Time every system."""
    return measured("fanout_1000", QUICK if quick else FULL)


def panel(axes: Any, figures: Lookup) -> None:
    """Draw the medians."""
    bars(axes, figures, "fanout_1000", SYSTEMS)
