"""What is missing or damaged in the record of a run, as a person is told of it."""

from __future__ import annotations

from rich.console import Console

from weft.cli.text import clean
from weft.core.ports.journal import Losses


def print_losses(console: Console, losses: Losses) -> None:
    """A line for each loss, and what it means for `once` calls. Nothing where nothing is lost."""
    for note in losses.notes:
        console.print(f"lost: {clean(note)}", style="bold yellow", soft_wrap=True)
    if losses.calls:
        told = f"{len(losses.calls):,} records of once calls are known from beside the journal"
        console.print(f"  {told}; a call without a known end is unknown", soft_wrap=True)
