"""A step, a thousand that wait for it side by side, and one that waits for all."""

from __future__ import annotations

from typing import Any

from evals.durability.rounds import measure
from evals.durability.rows import bars, rows_of, table
from evals.durability.systems import SYSTEMS
from evals.engine.rows import Lookup

__all__ = ["panel", "rows", "table"]


def rows(quick: bool) -> list[dict[str, Any]]:
    """Time every system."""
    return rows_of("fanout_1000", measure("fanout_1000", SYSTEMS, 3 if quick else 12))


def panel(axes: Any, figures: Lookup) -> None:
    """Draw the medians."""
    bars(axes, figures, "fanout_1000")
