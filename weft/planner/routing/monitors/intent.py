"""Intent: whether what is wanted is still what is meant, seen from what has been had so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.planner.routing.goal import Goal
from weft.planner.routing.monitor import Scene, Signal

Meaning = Callable[[Goal, Mapping[str, Any]], Goal | None]
"""(the goal, what has been had) -> the goal that is meant; None: the one there is."""


class Intent:
    """Implements `Monitor`: asks `meaning` after every call."""

    def __init__(self, meaning: Meaning, *, priority: float = 1.0) -> None:
        self.name = "intent"
        self.every_s: float | None = None
        self._meaning = meaning
        self._priority = priority
        self._meant: Signal | None = None

    async def look(self, scene: Scene) -> Sequence[Signal]:
        meant = self._meaning(scene.goal, scene.values)
        if meant is not None and meant != scene.goal:
            self._meant = Signal(self._priority, f"{meant.name} is meant now", goal=meant)
        return [] if self._meant is None else [self._meant]
