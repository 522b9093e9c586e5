"""Options and tables of the commands about queues and schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from weft.cli.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from weft.core.ports.queue import QueueEntry
    from weft.workflow.queue.declared import AppliedSchedule
    from weft.workflow.queue.live_workers import LiveWorker
    from weft.workflow.queue.waiting import FlowVersion, WaitingRuns

Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; repeat it for more."),
]
InputsFile = Annotated[
    Path | None,
    typer.Option(metavar="JSON", help="A JSON object of inputs.", exists=True, dir_okay=False),
]
Priority = Annotated[int, typer.Option(metavar="N", help="Higher first.")]
Queue = Annotated[str, typer.Option(metavar="NAME", help="The queue, for workers of its own.")]
ConcurrencyLimit = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="At most so many runs of one key at once, on all machines.", min=1
    ),
]
ConcurrencyKey = Annotated[
    str, typer.Option(metavar="KEY", help="What the limit is for; else the workflow's name.")
]


def applied_line(applied: AppliedSchedule) -> str:
    """What registering a declared schedule changed, in one line."""
    schedule = applied.schedule
    line = f"{applied.change}  {clean(schedule.name)}  {clean(schedule.header.flow)}"
    if applied.change == "removed":
        return line
    return f"{line}@{schedule.terms.version}  next {zoned_time(schedule.next_s, schedule.zone)}"


def zoned_time(time_s: float, zone: str) -> str:
    """A time (seconds since 1970) in a zone, to the second."""
    return datetime.fromtimestamp(time_s, ZoneInfo(zone)).isoformat(timespec="seconds")


STYLES = {
    "queued": "cyan",
    "running": "green",
    "asking": "bold yellow",
    "stopped": "bold red",
}


def print_entries(
    console: Console,
    entries: Sequence[QueueEntry],
    waiting: Mapping[FlowVersion, WaitingRuns],
    now: datetime,
) -> None:
    """Print a table of queued runs; `waiting` as of `waiting_versions`."""
    from weft.cli.console import table

    shown = table("!run", "state", "queue", ">priority", "version", ">attempts", "~note")
    for entry in entries:
        shown.add_row(
            Text(clean(entry.run)),
            Text(entry.state, STYLES.get(entry.state, "")),
            clean(entry.terms.queue),
            str(entry.terms.priority),
            f"{clean(entry.flow)}@{entry.terms.version}",
            str(entry.attempts),
            Text(clean("; ".join(_notes(entry, waiting, now))), "dim"),
        )
    console.print(shown)


def worker_line(worker: LiveWorker) -> str:
    """A worker in one line; then a line for each run that it executes."""
    data, entry = worker.data(), worker.entry
    parts = [
        f"{entry.host}  process {entry.pid}",
        f"{len(worker.running)} of {entry.concurrency} runs",
        f"since {data['since']}  heartbeat {data['heartbeat']}",
        " ".join(data["versions"]),
    ]
    parts += [f"queues {', '.join(entry.queues)}"] if entry.queues != ("default",) else []
    parts += ["drains"] if entry.draining else []
    return "\n  ".join(clean(line) for line in ("  ".join(parts), *worker.running))


def entry_data(entry: QueueEntry, waiting: Mapping[FlowVersion, WaitingRuns]) -> dict[str, object]:
    """A queued run as JSON data; `waiting` as of `waiting_versions`."""
    terms = entry.terms
    return {
        "run": entry.run,
        "flow": entry.flow,
        "state": entry.state,
        "status": entry.status,
        "version": terms.version,
        "queue": terms.queue,
        "priority": terms.priority,
        "due": _time(terms.due_s) if terms.due_s else None,
        "concurrency_key": terms.concurrency_key or None,
        "concurrency_limit": terms.concurrency_limit,
        "attempts": entry.attempts,
        "submitted": entry.wall,
        "holder": entry.holder or None,
        "reason": entry.reason or None,
        "waiting": _waits(entry, waiting, datetime.now(UTC)) or None,
    }


def _waits(entry: QueueEntry, waiting: Mapping[FlowVersion, WaitingRuns], now: datetime) -> str:
    """What a run that is ready waits for, if no worker has any of its version."""
    from weft.workflow.queue.waiting import version_of_entry

    ready = entry.state == "queued" and entry.terms.due_s <= now.timestamp()
    found = waiting.get(version_of_entry(entry)) if ready else None
    return "" if found is None else found.note


def _notes(
    entry: QueueEntry, waiting: Mapping[FlowVersion, WaitingRuns], now: datetime
) -> list[str]:
    notes = [entry.reason] if entry.reason else []
    if entry.state == "queued" and entry.terms.due_s > now.timestamp():
        notes.append(f"not before {_time(entry.terms.due_s)}")
    if waits := _waits(entry, waiting, now):
        notes.append(waits)
    if entry.state == "running":
        notes.append(entry.holder or "its worker died; the next free one continues it")
    if entry.state == "ended" and entry.status:
        notes.append(entry.status)
    if entry.terms.concurrency_limit is not None:
        limit = f"{entry.terms.concurrency_limit} at once of {entry.terms.concurrency_key}"
        notes.append(f"at most {limit}")
    return notes


def _time(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")
