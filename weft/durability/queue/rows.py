"""Rows of queued runs, schedules and workers as values; and the errors of both kinds of queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, LiteralString, NamedTuple

from weft.core.codec import decode, encode
from weft.core.errors import StoreError, UnknownReference
from weft.core.ids import RunId
from weft.core.ports.journal import RunHeader
from weft.core.ports.queue import QueueEntry, QueueState, QueueTerms, RunSchedule, WorkerEntry
from weft.durability.journal.rows import sealed, unsealed

TERMS: Final[LiteralString] = "queue, version, priority, due, limit_key, at_most, max_attempts"
"""The columns of `QueueTerms`, in the order of `terms_row`."""


class QueueCandidate(NamedTuple):
    """A run that may be taken, unless its limit or its attempts forbid it."""

    no: int
    run: RunId
    state: QueueState
    attempts: int
    key: str
    limit: int | None
    max_attempts: int
    version: str


def terms_row(terms: QueueTerms, flow: str) -> tuple[object, ...]:
    """The values of `TERMS`; the key of a concurrency limit is by default the workflow's name."""
    key = (terms.concurrency_key or flow) if terms.concurrency_limit is not None else ""
    return (
        terms.queue,
        terms.version,
        terms.priority,
        terms.due_s,
        key,
        terms.concurrency_limit,
        terms.max_attempts,
    )


def terms_in(row: Sequence[Any]) -> QueueTerms:
    """The inverse of `terms_row`."""
    queue, version, priority, due_s, key, limit, max_attempts = row
    return QueueTerms(version, queue, priority, float(due_s), key, limit, max_attempts)


def entry_in(row: Sequence[Any], holder: str) -> QueueEntry:
    """The entry in a row: id, flow, wall, status, state, attempts, reason, then `TERMS`."""
    run, flow, wall, status, state, attempts, reason, *terms = row
    return QueueEntry(
        RunId(run), flow, terms_in(terms), state, attempts, wall, holder, status, reason
    )


def stored_header(header: RunHeader) -> bytes:
    """The header of a schedule as it is stored, without separate values."""
    return sealed(encode(header))


def schedule_in(row: Sequence[Any]) -> RunSchedule:
    """The schedule in a row: name, cron, zone, catch_up, next, header, then `TERMS`."""
    name, cron, zone, catch_up, next_s, body, *terms = row
    header = decode(unsealed(bytes(body)))
    if not isinstance(header, RunHeader):
        raise StoreError(f"the schedule {name!r} is damaged", hint="add it again")
    return RunSchedule(name, cron, zone, catch_up, float(next_s), header, terms_in(terms))


def worker_body(worker: WorkerEntry) -> str:
    """A worker as it is stored, without its id and its heartbeat."""
    fields = asdict(worker)
    del fields["id"], fields["beat_s"]
    return json.dumps(fields)


def worker_in(row: Sequence[Any]) -> WorkerEntry:
    """The worker in a row: id, body, time of the heartbeat. Raises: `StoreError`."""
    worker, body, beat_s = row
    try:
        fields = json.loads(body)
        return WorkerEntry(
            worker,
            str(fields["host"]),
            int(fields["pid"]),
            tuple((str(flow), str(version)) for flow, version in fields["versions"]),
            tuple(map(str, fields["queues"])),
            int(fields["concurrency"]),
            float(fields["since_s"]),
            fields["draining"] is True,
            float(beat_s),
        )
    except (ValueError, TypeError, LookupError):
        hint = "it leaves with its lease"
        raise StoreError(f"the entry of the worker {worker!r} is damaged", hint=hint) from None


def worn_out(attempts: int) -> str:
    """The reason of a run that was stopped after so many attempts."""
    return f"its worker died {attempts} times; `weft queue retry` lets another one try"


def not_queued(run: RunId) -> UnknownReference:
    """The error for a recorded run that is not in the queue."""
    hint = f"`weft resume {run}` continues it"
    return UnknownReference(f"the run {run!r} was not submitted to the queue", hint=hint)
