"""Risk: what may go wrong with the tools ahead, seen from what has been had so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from weft.planner.routing.cost import DOWN
from weft.planner.routing.monitor import Scene, Signal

Rule = Callable[[str, Mapping[str, Any]], float]
"""(tool, what has been had) -> its risk: 0 none, infinite: it must not be called."""


class Risks:
    """Implements `Monitor`: asks `rule` about each of `tools`."""

    def __init__(self, tools: Sequence[str], rule: Rule, *, priority: float = 0.8) -> None:
        self.name = "risk"
        self.every_s: float | None = None
        self._tools = tools
        self._rule = rule
        self._priority = priority

    async def look(self, scene: Scene) -> Sequence[Signal]:
        risks = {tool: self._rule(tool, scene.values) for tool in self._tools}
        return [self._signal(tool, risk) for tool, risk in risks.items() if risk > 0]

    def _signal(self, tool: str, risk: float) -> Signal:
        if risk == inf:
            return Signal(self._priority, "too risky now", tool, health=DOWN)
        return Signal(self._priority, f"risk {risk:g}", tool, risk=risk)
