"""Schedules of a journal: one is made of a workflow, and added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.errors import InputError, UnknownReference
from weft.core.ports.journal import Journal
from weft.core.ports.queue import CatchUp, RunSchedule, queue_of
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit
from weft.workflow.queue.schedules import CATCH_UPS, check_fields, next_time
from weft.workflow.queue.submission import checked_key, prepare
from weft.workflow.runtime.options import RunSettings


def add_schedule(
    journal: Journal, name: str, cron: str, unit: Unit, inputs: object, **given: Any
) -> RunSchedule:
    """Add a schedule, or replace the one of its name; arguments as of `make_schedule`."""
    schedule = make_schedule(name, cron, unit, inputs, **given)
    queue_of(journal).put_schedule(schedule)
    return schedule


def make_schedule(
    name: str,
    cron: str,
    unit: Unit,
    inputs: object,
    *,
    now_s: float,
    zone: str = "UTC",
    catch_up: CatchUp = "one",
    settings: RunSettings | None = None,
    **terms: Any,
) -> RunSchedule:
    """A schedule that fires after `now_s`; `terms` as for `prepare`.

    Raises: `InputError` for a wrong name, expression, zone or input; `BuildError`, `StoreError`.
    """
    checked_key(name)
    if catch_up not in CATCH_UPS:
        raise InputError(f"`catch_up` is one of {', '.join(CATCH_UPS)}, not {catch_up!r:.80}")
    check_fields(cron)
    header, queued = prepare(unit, inputs, settings or RunSettings(), **terms)
    return RunSchedule(name, cron, zone, catch_up, next_time(cron, zone, now_s), header, queued)


def unknown_schedule(name: str, known: Sequence[RunSchedule]) -> UnknownReference:
    """The error for a schedule that a journal does not have."""
    hint = choice_hint(name, [schedule.name for schedule in known]) or "there are none"
    return UnknownReference(f"there is no schedule {name!r:.80}", hint=hint)
