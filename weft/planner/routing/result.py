"""The result of a route, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weft.core.errors import Failure
from weft.planner.routing.monitor import RoutedCall


@dataclass(frozen=True, slots=True)
class Reroute:
    """`tool` failed, and the route continued with `to`, tools that were not on it before.

    Empty `to`: calls already running were enough.
    """

    tool: str
    to: tuple[str, ...]
    failure: Failure


@dataclass(frozen=True, slots=True)
class LoweredGoal:
    """No route was left to `goal`, and `by` accepted `chosen` instead.

    `failures` by tool are the causes. When a person provides the missing values, `chosen` equals
    `goal`.
    """

    goal: str
    chosen: str
    by: Literal["model", "person"]
    failures: Mapping[str, Failure]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RouteResult:
    """The reached goal, the values of its wants by name, and the calls and reroutes on the way.

    `model_calls` counts the calls of a model to find the route.
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
