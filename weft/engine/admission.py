"""Which nodes that have all they need may start now: slots, and the widths of growing nodes.

Starts nothing itself; hands out those that may, in order.
"""

from __future__ import annotations

from collections import deque

from weft.engine.options import RunOptions
from weft.engine.slots import Slots
from weft.engine.state import Growth, NodeState, Phase

_QUEUED = Phase.QUEUED


class Admission:
    """The way from ready to started: those in `ready` at once, then those that `admit` gives.

    `limited`: some wait for slots, and `admit` may give any. Whoever takes one gives its slots
    back when it has stopped waiting meanwhile.
    """

    def __init__(self, options: RunOptions) -> None:
        self._slots = Slots(options.max_concurrency, options.limits)
        self.limited = options.max_concurrency is not None or bool(options.limits)
        self.ready: deque[NodeState] = deque()
        self.admit = self._slots.admit
        self.give = self._slots.give

    def enqueue(self, state: NodeState) -> None:
        """`state` has all it needs: it starts when its parent's width and the slots allow."""
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

    def line_up(self, state: NodeState) -> None:
        """`state` starts as soon as there is a slot."""
        state.phase = _QUEUED
        if not self.limited or self._slots.take(state):
            self.ready.append(state)

    def open_gate(self, growth: Growth) -> None:
        """One of the nodes that `growth` counts has ended: another may go."""
        growth.free += 1
        while growth.queue and growth.free:
            following = growth.queue.popleft()
            if following.phase is Phase.QUEUED:
                growth.free -= 1
                following.gate = growth
                self.line_up(following)

    def close(self) -> None:
        """Nobody starts any more."""
        self.ready.clear()
