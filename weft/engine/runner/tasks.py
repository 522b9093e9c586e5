"""The timers and cancelled tasks of a run; none of them outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from weft.core.ids import NodeId
from weft.core.ports import Clock, Timer
from weft.engine.scheduler.commands import SetTimer, TimerFired
from weft.engine.scheduler.state import NodeState


class Timers:
    """Calls `on_due` with the `TimerFired` of each timer that is due, in order of time.

    Cleared entries stay in the heap until they are due, and then do nothing.
    """

    def __init__(self, clock: Clock, on_due: Callable[[TimerFired], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._heap: list[tuple[float, int]] = []
        self._set: dict[int, TimerFired] = {}
        self._by_state: dict[NodeState | None, list[int]] = {}
        self._order = count()
        self._timer: Timer | None = None
        self._armed_for = 0.0

    def set(self, command: SetTimer) -> None:
        """Set a timer for `command.delay_s` from now."""
        state, epoch, kind, delay_s = command
        due, number = self._clock.now() + delay_s, next(self._order)
        heappush(self._heap, (due, number))
        self._set[number] = TimerFired(state, epoch, kind)
        self._by_state.setdefault(state, []).append(number)
        if self._timer is None or due < self._armed_for:
            self._arm(due)

    def clear(self, state: NodeState | None) -> None:
        """Clear the timers of `state`."""
        for number in self._by_state.pop(state, ()):
            self._set.pop(number, None)

    def close(self) -> None:
        """Clear everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
        self._set.clear()
        self._by_state.clear()

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = due
        self._timer = self._clock.call_later(max(0.0, due - self._clock.now()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = max(self._clock.now(), self._armed_for)  # a loop may call a hair too early
        heap = self._heap
        while heap and (heap[0][0] <= now or heap[0][1] not in self._set):
            fired = self._set.pop(heappop(heap)[1], None)
            if fired is not None:
                self._on_due(fired)
        if heap:
            self._arm(heap[0][0])


class CancellingTasks:
    """Tasks that only the end of the run waits for, each with its node."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], NodeId] = {}

    def add(self, task: asyncio.Task[None], node: NodeId) -> None:
        """Add a `task` that is about to end."""
        self._tasks[task] = node
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def wait(self, grace_s: float, clock: Clock) -> None:
        """Wait until all are done or `grace_s` has passed on the run's clock."""
        tasks = list(self._tasks)
        if not tasks:
            return
        enough = asyncio.get_running_loop().create_future()
        left = len(tasks)

        def stop_waiting() -> None:
            if not enough.done():
                enough.set_result(None)

        def one_done(_: asyncio.Task[None]) -> None:
            nonlocal left
            left -= 1
            if not left:
                stop_waiting()

        timer = clock.call_later(grace_s, stop_waiting)
        for task in tasks:
            task.add_done_callback(one_done)
        try:
            await enough
        finally:
            timer.cancel()

    def give_up(self) -> tuple[NodeId, ...]:
        """The nodes of tasks that have not ended, in order of name; cancels them again."""
        for task in self._tasks:
            task.cancel()  # it may have been a store that did not answer
        return tuple(sorted(set(self._tasks.values())))
