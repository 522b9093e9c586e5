"""Who may run now: slots of each resource class and in all, and who waits, most urgent first."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from weft.engine.state import NodeState

_Waiting = tuple[float, int, NodeState]


class Slots:
    """Counts free slots. Among those that wait, the longer remaining critical path goes first."""

    def __init__(self, max_concurrency: int | None, limits: Mapping[str, int]) -> None:
        for name, limit in [("concurrency", max_concurrency), *limits.items()]:
            if limit is not None and limit < 1:
                raise ValueError(f"the limit of {name!r} must be at least 1, got {limit}")
        self._general = max_concurrency
        self._free = dict(limits)
        self._queues: dict[str, list[_Waiting]] = {}

    def take(self, state: NodeState) -> bool:
        """Take the slots `state` needs, or put it in its queue."""
        resource = state.node.policy.resource
        limited = resource in self._free
        if self._general is None and not limited:
            return True
        key = resource if limited and resource is not None else ""
        queue = self._queues.setdefault(key, [])
        heappush(queue, (-state.rank, state.order, state))
        return False

    def give(self, state: NodeState) -> None:
        """Give back what `state` holds. Harmless when it holds nothing."""
        if not state.slotted:
            return
        state.slotted = False
        if self._general is not None:
            self._general += 1
        resource = state.node.policy.resource
        if resource is not None and resource in self._free:
            self._free[resource] += 1

    def admit(self) -> NodeState | None:
        """The most urgent of those who may start now; it holds its slots when it is returned.

        The caller gives the slots back at once when the state has stopped waiting meanwhile.
        """
        if self._general == 0 or not self._queues:
            return None
        best = self._most_urgent()
        if best is None:
            return None
        state = heappop(self._queues[best])[2]
        state.slotted = True
        if self._general is not None:
            self._general -= 1
        if best:
            self._free[best] -= 1
        return state

    def _most_urgent(self) -> str | None:
        best: tuple[_Waiting, str] | None = None
        for name, queue in self._queues.items():
            if (
                queue
                and (not name or self._free[name] > 0)
                and (best is None or queue[0] < best[0])
            ):
                best = queue[0], name
        return None if best is None else best[1]
