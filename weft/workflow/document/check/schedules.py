"""Checks of the schedules that a workflow declares: times, zones, inputs, names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.core.errors import BuildError, DuplicateName, InputError
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.inputs import check_inputs
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.settings import ScheduleSpec
from weft.workflow.document.unit import Unit
from weft.workflow.queue.schedules import check_fields, next_time, zone_of


def check_schedules(unit: Unit, log: DefectLog) -> None:
    """Check the declared schedules of `unit`; `log` takes their defects."""
    names: set[str] = set()
    for path, schedule in unit.document.schedules:
        with log:
            _check_times(unit, schedule, path)
        with log, _placed(unit, (*path, "inputs"), "write it under the schedule's `inputs`"):
            check_inputs(unit.document, schedule.inputs)
        with log, _placed(unit, (*path, "concurrency_key")):
            if schedule.concurrency_key and schedule.concurrency_limit is None:
                hint = "add `concurrency_limit: 1`"
                raise InputError("a `concurrency_key` needs a limit", hint=hint)
        name = schedule.name or unit.document.name
        with log, _placed(unit, path):
            if name in names:
                raise DuplicateName(
                    f"two schedules are called `{name}`", hint="add a `name` to one"
                )
        names.add(name)


def _check_times(unit: Unit, schedule: ScheduleSpec, path: KeyPath) -> None:
    with _placed(unit, (*path, "timezone")):
        zone_of(schedule.timezone)
    with _placed(unit, (*path, "cron")):
        check_fields(schedule.cron)
        next_time(schedule.cron, schedule.timezone, 0.0)


@contextmanager
def _placed(unit: Unit, path: KeyPath, hint: str | None = None) -> Iterator[None]:
    """Errors get their position in the file, and this hint."""
    try:
        yield
    except BuildError as error:
        error.hint = hint or error.hint
        unit.fail(error, path)
