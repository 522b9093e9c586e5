"""Watchers that look at an errand beside its work, and the signals they give. Acts on nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

from weft.core.errors import Failure
from weft.planner.routing.goal import Goal


@dataclass(frozen=True, slots=True)
class Call:
    """A call that ended. `failure` is None where it succeeded."""

    tool: str
    latency_s: float
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to see: what is wanted, what has been had, which calls ended, which tools are
    next on the way.
    """

    goal: Goal
    values: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    ahead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signal:
    """What a monitor has to say. Of several about one thing, the one of most `priority` counts.

    tool, health   the tool is well (1), that much dearer than usual, or closed (`DOWN`)
    tool, risk     what may go wrong when it is called
    goal           something else is wanted now

    Raises: `ValueError` for numbers that mean nothing.
    """

    priority: float
    reason: str
    tool: str = ""
    health: float | None = None
    risk: float | None = None
    goal: Goal | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.priority):
            raise ValueError(f"a priority is a finite number, got {self.priority}")
        if self.health is not None and not self.health > 0:
            raise ValueError(f"a tool's health is above 0, got {self.health}")
        if self.risk is not None and not (isfinite(self.risk) and self.risk >= 0):
            raise ValueError(f"a risk is a finite number of at least 0, got {self.risk}")


class Monitor(Protocol):
    """Looks at an errand, at its start, after every call, and every `every_s` seconds if set.

    All monitors of an errand look at the same time, beside the calls. What one says stays true
    until its next look. One that raises is heard no more.
    """

    @property
    def name(self) -> str:
        """What logs call it."""

    @property
    def every_s(self) -> float | None:
        """The longest time between two looks; None: only when something happened."""

    async def look(self, scene: Scene) -> Sequence[Signal]:
        """What is to be said of `scene` now."""
