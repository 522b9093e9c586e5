"""Firing of due schedules by a worker: each time once, however many workers there are."""

from __future__ import annotations

import asyncio
import time

from weft.core.errors import InputError
from weft.core.ids import RunId
from weft.core.loggers import logger
from weft.core.ports.queue import RunQueue, RunSchedule
from weft.workflow.queue.schedules import due_firing, run_of_tick

_logger = logger("queue")


async def fire_schedules(
    queue: RunQueue, now_s: float | None = None
) -> list[tuple[RunId, RunSchedule]]:
    """Submit the runs of all due schedules; those that this process has submitted.

    Raises: `StoreError`.
    """
    return await asyncio.to_thread(_fire_all, queue, time.time() if now_s is None else now_s)


def _fire_all(queue: RunQueue, now_s: float) -> list[tuple[RunId, RunSchedule]]:
    fired: list[tuple[RunId, RunSchedule]] = []
    waiting = [schedule for schedule in queue.schedules() if schedule.next_s <= now_s]
    while waiting:
        schedule = waiting.pop()
        try:
            firing = due_firing(schedule, now_s)
        except InputError as error:  # such as a worker without the time zone
            _logger.warning("the schedule %s cannot fire here: %s", schedule.name, error)
            continue
        if firing is None:
            continue
        run = None if firing.tick_s is None else run_of_tick(schedule.name, firing.tick_s)
        if not queue.fire(schedule, firing.next_s, run, firing.tick_s or 0.0):
            continue  # another worker has
        if run is not None:
            fired.append((run, schedule))
        if firing.next_s <= now_s:
            waiting += [one for one in queue.schedules() if one.name == schedule.name]
    return fired
