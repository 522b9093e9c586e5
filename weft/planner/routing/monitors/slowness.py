"""Tool health: a tool that took far longer than it should is dearer from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.planner.routing.monitor import Scene, Signal


class Slowness:
    """Implements `Monitor`. `expected_s` by group; `groups` names the group that a tool belongs to.

    Tools of one group share what makes them slow: a provider, a network, a machine. When a call
    took more than `factor` times what is expected in its group, all tools of the group are dearer
    by as much as it was late, at most `most`.
    """

    def __init__(
        self,
        expected_s: Mapping[str, float],
        groups: Mapping[str, str],
        *,
        factor: float = 3.0,
        most: float = 20.0,
        priority: float = 0.5,
    ) -> None:
        self.name = "tool latency"
        self.every_s: float | None = None
        self._expected_s = expected_s
        self._groups = groups
        self._factor = factor
        self._most = most
        self._priority = priority

    async def look(self, scene: Scene) -> Sequence[Signal]:
        late: dict[str, float] = {}
        for call in scene.calls:
            group = self._groups.get(call.tool, "")
            expected_s = self._expected_s.get(group, 0.0)
            if expected_s > 0:
                late[group] = call.latency_s / expected_s  # the last call counts
        return [
            Signal(
                self._priority,
                f"{late[group]:.1f} times slower than expected",
                tool,
                health=min(self._most, late[group]),
            )
            for tool, group in self._groups.items()
            if late.get(group, 0.0) > self._factor
        ]
