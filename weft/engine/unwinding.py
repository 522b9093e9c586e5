"""Tasks that were told to end, until they have, for as long as a run waits for that."""

from __future__ import annotations

import asyncio

from weft.core.ids import NodeId
from weft.core.ports import Clock


class Unwinding:
    """Tasks that nobody waits for any more but the end of the run, each with its node."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], NodeId] = {}

    def add(self, task: asyncio.Task[None], node: NodeId) -> None:
        """`task` is about to end."""
        self._tasks[task] = node
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def wait(self, grace_s: float, clock: Clock) -> None:
        """Wait until all are done or `grace_s` has passed, on the run's own clock."""
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
        """The nodes whose tasks have not ended, in order of their names; cancels them again."""
        for task in self._tasks:
            task.cancel()  # it may have been a store that did not answer
        return tuple(sorted(set(self._tasks.values())))
