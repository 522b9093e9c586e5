"""Many runs, a line for each. Reads no journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.text import clean, duration, listing
from weft.core.ports.journal import RunSummary

STYLES = {
    "running": "cyan",
    "asking": "bold yellow",
    "interrupted": "magenta",
    "succeeded": "green",
    "partial": "yellow",
    "failed": "bold red",
    "cancelled": "magenta",
    "unfinished": "magenta",
}


def print_runs(console: Console, runs: Sequence[tuple[RunSummary, str]], now: datetime) -> None:
    """A table of runs, each with how it stands."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", no_wrap=True, overflow="fold")
    table.add_column("standing", no_wrap=True)
    table.add_column("began", no_wrap=True)
    table.add_column("took", no_wrap=True, justify="right")
    table.add_column("records", no_wrap=True, justify="right")
    table.add_column("note", overflow="fold")
    for summary, standing in runs:
        table.add_row(
            Text(clean(summary.run)),
            Text(standing, STYLES.get(standing, "")),
            ago(summary.wall, now),
            took(summary),
            f"{summary.records:,}",
            Text(_note(summary), "dim"),
        )
    console.print(table)


def run_data(summary: RunSummary, standing: str) -> dict[str, object]:
    """A run as the JSON document has it."""
    return {
        "run": summary.run,
        "flow": summary.flow,
        "standing": standing,
        "held": summary.standing in ("running", "asking"),
        "began": summary.wall,
        "ended": summary.ended_wall or None,
        "parts": summary.parts,
        "records": summary.records,
        "asking": list(summary.asking),
    }


def ago(wall: str, now: datetime) -> str:
    """How long ago a time in ISO 8601 was: `3 min 20 s ago`, or the day when it is long ago."""
    then = moment(wall)
    if then is None:
        return clean(wall)
    seconds = (now - then).total_seconds()
    if seconds >= 24 * 3600:
        return then.astimezone().strftime("%Y-%m-%d %H:%M")
    if seconds < 60:
        return f"{max(0, round(seconds))} s ago"
    return f"{duration(seconds)} ago"


def took(summary: RunSummary) -> str:
    """How long a run took from its beginning to its end, pauses included; empty without end."""
    began, ended = moment(summary.wall), moment(summary.ended_wall)
    if began is None or ended is None:
        return ""
    return duration(max(0.0, (ended - began).total_seconds()))


def moment(wall: str) -> datetime | None:
    """A time in ISO 8601, UTC where it names no zone; None where it is none."""
    try:
        found = datetime.fromisoformat(wall)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _note(summary: RunSummary) -> str:
    return "; ".join(_notes(summary))


def _notes(summary: RunSummary) -> Iterable[str]:
    if summary.parts > 1:
        yield f"resumed {summary.parts - 1}x"
    if summary.asking:
        yield f"waits for an answer to {clean(listing(summary.asking))}"
