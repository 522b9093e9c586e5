"""The report of a simulated map over a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Console

from weft.cli.console import table
from weft.cli.text import byte_size, duration
from weft.durability.simulate.cluster import ClusterPrediction, Resource
from weft.durability.simulate.cluster_costs import JournalKind

_NAMES: Final[Mapping[Resource, str]] = {
    "slots": "machines",
    "process": "weft's process",
    "scheduler": "  its scheduler",
    "journal": "  its journal",
    "messages": "  its messages",
    "store": "content store",
}


_JOURNALS: Final[Mapping[JournalKind, str]] = {
    "none": "none",
    "sqlite": "a file",
    "postgres": "PostgreSQL",
}


def print_cluster(
    console: Console, predicted: ClusterPrediction, seconds: float, journal: JournalKind
) -> None:
    """Print what items of so many seconds take, and what each part allows, the limit marked."""
    shown = table("~", "~", header=False)
    shown.add_row("items", f"{predicted.items:,} of {duration(seconds)}")
    shown.add_row("slots", f"{predicted.slots:,}")
    shown.add_row("predicted", duration(predicted.wall_s))
    shown.add_row("without overhead", duration(predicted.ideal_s))
    shown.add_row("items a second", f"{predicted.items / predicted.wall_s:,.0f}")
    shown.add_row("machines busy", f"{predicted.efficiency:.0%}")
    shown.add_row("memory of the process", byte_size(predicted.memory_bytes))
    kept = byte_size(predicted.journal_bytes)
    shown.add_row("journal", f"{_JOURNALS[journal]}, {kept}")
    console.print(shown)
    parts = table("~part", ">busy", ">items/s at most", "~")
    for name, title in _NAMES.items():
        if name in predicted.capacity:
            mark = "the limit" if name == predicted.limit else ""
            capacity = f"{predicted.capacity[name]:,.0f}"
            parts.add_row(title, f"{predicted.busy[name]:.0%}", capacity, mark)
    console.print(parts)
