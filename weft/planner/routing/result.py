"""How the way to a goal ended, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.errors import Failure
from weft.planner.routing.monitor import RoutedCall


@dataclass(frozen=True, slots=True)
class Reroute:
    """`tool` failed, and `to` went on: tools that were not on the way before.

    None in `to`: what was under way already was enough.
    """

    tool: str
    to: tuple[str, ...]
    failure: Failure


@dataclass(frozen=True, slots=True)
class LoweredGoal:
    """No way was left to `goal`, and somebody settled for `chosen`.

    `failures` are those that led there, by tool; `by` a person who provided what was missing has
    `chosen` equal to `goal`.
    """

    goal: str
    chosen: str
    by: Literal["model", "person"]
    failures: Mapping[str, Failure]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RouteResult:
    """The goal that was reached, the values of its wants by name, and all that happened on the way.

    `model_calls` counts what was asked of a model to find the way.
    """

    goal: str
    values: Mapping[str, Any]
    calls: tuple[RoutedCall, ...] = ()
    reroutes: tuple[Reroute, ...] = ()
    lowered: tuple[LoweredGoal, ...] = ()
    model_calls: int = 0

    @property
    def value(self) -> Any:
        """The value, where the goal has one want; else `values`."""
        only = list(self.values.values())
        return only[0] if len(only) == 1 else self.values
