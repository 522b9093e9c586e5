"""Waiting for cancelled tasks to end, for a while. Cancels nothing itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from weft.core.ports import Clock


async def all_done(tasks: Sequence[asyncio.Task[None]], grace_s: float, clock: Clock) -> None:
    """Wait until all `tasks` are done or `grace_s` has passed, on the run's own clock."""
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
