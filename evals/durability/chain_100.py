"""A hundred steps, one after the other, each durable before the next."""

from __future__ import annotations

from typing import Any

from evals.durability.rounds import measure
from evals.durability.rows import bars, rows_of, table
from evals.durability.systems import SYSTEMS
from evals.engine.rows import Lookup
from evals.reasoning.report import Target

__all__ = ["panel", "rows", "table"]
TARGETS = (Target("chain_100", "weft_sync", "ratio_to_langgraph", 0.15, at_most=True),)


def rows(quick: bool) -> list[dict[str, Any]]:
    """Time every system."""
    return rows_of("chain_100", measure("chain_100", SYSTEMS, 8 if quick else 60))


def panel(axes: Any, figures: Lookup) -> None:
    """Draw the medians."""
    bars(axes, figures, "chain_100")
