"""The report of a simulated map over a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Console

from weft.cli.console import table
from weft.cli.text import amount, byte_size, duration
from weft.durability.simulate.cluster import ClusterPrediction, Resource

_NAMES: Final[Mapping[Resource, str]] = {
    "slots": "machines",
    "process": "weft's process",
    "scheduler": "  its scheduler",
    "journal": "  its journal",
    "messages": "  its messages",
    "store": "content store",
}


def print_cluster(console: Console, predicted: ClusterPrediction) -> None:
    """Print what it takes, and what each part allows, the limit marked."""
    shown = table("~", "~", header=False)
    shown.add_row("items", f"{predicted.items:,} on {amount(predicted.slots, 'slot')}")
    shown.add_row("predicted", duration(predicted.wall_s))
    shown.add_row("without overhead", duration(predicted.ideal_s))
    shown.add_row("machines busy", f"{predicted.efficiency:.0%}")
    shown.add_row("memory of the process", byte_size(predicted.memory_bytes))
    shown.add_row("journal", byte_size(predicted.journal_bytes))
    console.print(shown)
    parts = table("~part", ">busy", ">items/s at most", "~")
    for name, title in _NAMES.items():
        if name in predicted.capacity:
            mark = "the limit" if name == predicted.limit else ""
            capacity = f"{predicted.capacity[name]:,.0f}"
            parts.add_row(title, f"{predicted.busy[name]:.0%}", capacity, mark)
    console.print(parts)
