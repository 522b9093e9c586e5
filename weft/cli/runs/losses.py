"""What is missing or damaged in the record of a run, as a person is told of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weft.cli.runs.effects import print_calls
from weft.cli.text import clean
from weft.core.calls import ToolCalled, ToolReturned
from weft.core.ports.journal import Losses, LostRun
from weft.engine.cassette import once_calls
from weft.engine.journal.refusals import lost


def print_losses(console: Console, losses: Losses) -> None:
    """A line for each loss, and what it means for `once` calls. Nothing where nothing is lost."""
    for note in losses.notes:
        console.print(f"lost: {clean(note)}", style="bold yellow", soft_wrap=True)
    if losses.calls:
        told = f"{len(losses.calls):,} records of once calls are known from beside the journal"
        console.print(f"  {told}; a call without a known end is unknown", soft_wrap=True)


def print_lost_runs(console: Console, gone: Sequence[LostRun]) -> None:
    """A line for each run that the journal has lost, and what to do."""
    for found in gone:
        error = lost(found)
        console.print(f"lost: {clean(error.message)}", style="bold yellow", soft_wrap=True)
        console.print(f"  {clean(error.hint or '')}", soft_wrap=True)


def print_lost_calls(console: Console, gone: Sequence[LostRun], run: str) -> None:
    """The `once` calls of the lost runs whose ids begin with `run`."""
    for found in gone:
        records = [c for c in found.calls if isinstance(c, ToolCalled | ToolReturned)]
        if found.run.startswith(run) and records:
            calls = once_calls(records)
            print_calls(console, calls, len(calls))
