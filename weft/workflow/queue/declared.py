"""Registration of the schedules that workflow files declare. Repeated, it changes nothing.

A schedule that a file declared is marked in the header of its runs; one that was added by hand is
never removed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from weft.core.errors import DuplicateName
from weft.core.ports.journal import Journal
from weft.core.ports.queue import RunSchedule, queue_of
from weft.workflow.document.check.schedules import check_schedules
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.unit import Unit
from weft.workflow.queue.scheduling import make_schedule

DECLARED: Final = "declared_schedule"
"""The setting in a header that marks the schedule of a file."""


class AppliedSchedule(NamedTuple):
    """A schedule of a file, and what registering it changed."""

    schedule: RunSchedule
    change: Literal["added", "updated", "unchanged", "removed"]


def apply_schedules(
    journal: Journal, units: Sequence[Unit], now_s: float
) -> tuple[AppliedSchedule, ...]:
    """Register the schedules that `units` declare, and remove those that they declared before.

    A schedule whose times are the same keeps its next firing time. Raises: `BuildError` for a wrong
    schedule, and for a name that another workflow's schedule has; `StoreError`.
    """
    wanted = _declared(units, now_s)
    queue = queue_of(journal)
    known = {schedule.name: schedule for schedule in queue.schedules()}
    for name, schedule in wanted.items():
        other = known[name].header.flow if name in known else schedule.header.flow
        if other != schedule.header.flow:
            hint = f"give it another `name`, or `weft schedule remove {name}` first"
            text = f"the journal has a schedule `{name}` of the workflow `{other}`"
            raise DuplicateName(text, hint=hint)
    applied = []
    for name, schedule in wanted.items():
        put = _kept(schedule, known.get(name))
        if put != known.get(name):
            queue.put_schedule(put)
        applied.append(AppliedSchedule(put, _change(put, known.get(name))))
    flows = {unit.document.name for unit in units}
    for name, schedule in known.items():
        ours = schedule.header.flow in flows and DECLARED in schedule.header.settings
        if ours and name not in wanted and queue.remove_schedule(name):
            applied.append(AppliedSchedule(schedule, "removed"))
    return tuple(applied)


def _declared(units: Sequence[Unit], now_s: float) -> dict[str, RunSchedule]:
    found: dict[str, RunSchedule] = {}
    for unit in units:
        log = DefectLog()
        check_schedules(unit, log)
        log.finish()
        for _, spec in unit.document.schedules:
            name = spec.name or unit.document.name
            if name in found:
                text = f"two workflows declare a schedule `{name}`"
                raise DuplicateName(text, hint="add a `name` to one")
            terms: dict[str, Any] = {
                "queue": spec.queue,
                "priority": spec.priority,
                "concurrency_limit": spec.concurrency_limit,
                "concurrency_key": spec.concurrency_key or "",
                "notes": {DECLARED: True},
            }
            found[name] = make_schedule(
                name,
                spec.cron,
                unit,
                spec.inputs,
                now_s=now_s,
                zone=spec.timezone,
                catch_up=spec.catch_up,
                **terms,
            )
    return found


def _kept(made: RunSchedule, known: RunSchedule | None) -> RunSchedule:
    """`made`, with the times of the one in the journal as far as they are still the same."""
    if known is None or (made.cron, made.zone) != (known.cron, known.zone):
        return made
    same = replace(made, next_s=known.next_s)
    as_before = replace(same, header=replace(made.header, wall=known.header.wall))
    return as_before if as_before == known else same


def _change(
    put: RunSchedule, known: RunSchedule | None
) -> Literal["added", "updated", "unchanged"]:
    if known is None:
        return "added"
    return "unchanged" if put == known else "updated"
