"""Which ready nodes may start now: slots, and the widths of expanding nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush

from weft.engine.graph.graph import RunOptions
from weft.engine.scheduler.state import ExpandState, NodePhase, NodeState

_Waiting = tuple[float, int, NodeState]


class SlotPool:
    """Counts free slots. Of the waiting nodes, the longest remaining critical path goes first."""

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
        """Give back the slots of `state`, if it has any."""
        if not state.slotted:
            return
        state.slotted = False
        if self._general is not None:
            self._general += 1
        resource = state.node.policy.resource
        if resource is not None and resource in self._free:
            self._free[resource] += 1

    def admit(self) -> NodeState | None:
        """The most urgent node that may start now, with its slots taken.

        The caller gives the slots back at once when the node has stopped waiting meanwhile.
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


_QUEUED = NodePhase.QUEUED


class NodeAdmission:
    """Admits ready nodes: those in `ready` at once, then those that `admit` returns.

    `limited`: some wait for slots, and `admit` may return any. The caller gives the slots of a node
    back when it has stopped waiting meanwhile.
    """

    def __init__(self, options: RunOptions) -> None:
        self._slots = SlotPool(options.max_concurrency, options.limits)
        self.limited = options.max_concurrency is not None or bool(options.limits)
        self.ready: deque[NodeState] = deque()
        self.admit = self._slots.admit
        self.give = self._slots.give

    def enqueue(self, state: NodeState) -> None:
        """Start `state`, which is ready, when its parent's width and the slots allow."""
        parent = state.parent
        gate = None if parent is None else parent.growth
        if gate is not None and state.node.id in gate.count.sources:
            if gate.free == 0:
                state.phase = _QUEUED
                gate.queue.append(state)
                return
            gate.free -= 1
            state.gate = gate
        state.phase = _QUEUED
        if not self.limited or self._slots.take(state):
            self.ready.append(state)

    def queue_for_slot(self, state: NodeState) -> None:
        """Start `state` as soon as there is a slot."""
        state.phase = _QUEUED
        if not self.limited or self._slots.take(state):
            self.ready.append(state)

    def open_gate(self, growth: ExpandState) -> None:
        """Admit another child of `growth`: one has ended."""
        growth.free += 1
        while growth.queue and growth.free:
            following = growth.queue.popleft()
            if following.phase is NodePhase.QUEUED:
                growth.free -= 1
                following.gate = growth
                self.queue_for_slot(following)

    def close(self) -> None:
        """Admit no node any more."""
        self.ready.clear()
