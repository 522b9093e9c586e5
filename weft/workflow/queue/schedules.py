"""Schedules with cron expressions: their firing times, and what to do about missed ones. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from weft.core.errors import InputError
from weft.core.extras import optional_packages
from weft.core.ids import RunId
from weft.core.ports.queue import CatchUp, RunSchedule

_LATE_S: Final = 60.0
"""A firing time this long ago was missed; the next look of a live worker comes sooner."""
_MANY: Final = 100_000
_FIELDS: Final = "five fields: minute hour day month weekday, such as '0 3 * * MON-FRI'"
_SHORT: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def next_time(cron: str, zone: str, after_s: float) -> float:
    """The first firing time after `after_s`, both in seconds since 1970.

    Times of `zone` that daylight saving skips or repeats fire once, as in Debian's cron.
    Raises: `InputError` for a wrong expression or zone, and for one that never fires.
    """
    with optional_packages("a schedule", InputError):
        from cronsim import CronSim, CronSimError
    place = zone_of(zone)
    try:
        found = next(CronSim(cron, datetime.fromtimestamp(after_s, place)))
    except CronSimError as error:
        raise InputError(f"{cron!r:.80} is no cron expression: {error}", hint=_FIELDS) from None
    except StopIteration:
        raise InputError(f"{cron!r:.80} never fires") from None
    return found.timestamp()


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name. Raises: `InputError`."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        hint = "name an IANA time zone, such as Europe/Berlin or UTC"
        raise InputError(f"there is no time zone {name!r:.80}", hint=hint) from None


def check_fields(cron: str) -> None:
    """Check that an expression has five fields: six would be read as one with seconds.

    Raises: `InputError`.
    """
    if (meant := _SHORT.get(cron.strip().lower())) is not None:
        raise InputError(f"{cron!r:.80} is not supported", hint=f"write {meant!r}")
    if (count := len(cron.split())) != 5:
        says = f"{cron!r:.80} is no cron expression: it has {count} fields"
        raise InputError(says, hint=_FIELDS)


class Firing(NamedTuple):
    """`tick_s`: the firing time for which a run is submitted, or None; `next_s`: the next one."""

    tick_s: float | None
    next_s: float


def due_firing(schedule: RunSchedule, now_s: float) -> Firing | None:
    """What to do about a schedule now; None before its time. With `all`, once for each time.

    Raises: `InputError`.
    """
    if schedule.next_s > now_s:
        return None
    tick_s, next_s = schedule.next_s, _after(schedule, schedule.next_s)
    if schedule.catch_up == "all":
        return Firing(tick_s, next_s)
    for _ in range(_MANY):
        if next_s > now_s:
            break
        tick_s, next_s = next_s, _after(schedule, next_s)
    else:  # years of a schedule for each minute
        next_s = _after(schedule, now_s)
    missed = schedule.catch_up == "skip" and now_s - tick_s > _LATE_S
    return Firing(None if missed else tick_s, next_s)


def _after(schedule: RunSchedule, time_s: float) -> float:
    return next_time(schedule.cron, schedule.zone, time_s)


def run_of_tick(name: str, tick_s: float) -> RunId:
    """The id of the run of a firing time: one for all workers."""
    return RunId(f"{name}-{datetime.fromtimestamp(tick_s, UTC):%Y%m%dT%H%M%SZ}")


CATCH_UPS: Final[tuple[CatchUp, ...]] = ("skip", "one", "all")
