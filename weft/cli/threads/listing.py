"""The strategies as a table for people, or as JSON."""

from __future__ import annotations

import sys

from rich.table import Table

from weft.cli import console
from weft.cli.values import json_text
from weft.reasoning.strategies import STRATEGIES


def print_strategies(*, as_json: bool) -> None:
    """Print what there is: name, what it does, where it is exact, what it needs."""
    if as_json:
        rows = [
            {
                "name": name,
                "summary": entry.summary,
                "source": entry.source,
                "exact": entry.exact,
                "needs": entry.needs,
            }
            for name, entry in STRATEGIES.items()
        ]
        sys.stdout.write(json_text(rows) + "\n")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("strategy", no_wrap=True)
    table.add_column("what it does", overflow="fold", ratio=3)
    table.add_column("exact with", overflow="fold", ratio=2)
    table.add_column("needs", overflow="fold", ratio=2)
    for name, entry in STRATEGIES.items():
        what = f"{entry.summary} ({entry.source})" if entry.source else entry.summary
        table.add_row(name, what, entry.exact or "nothing: approximate", entry.needs)
    console.stdout().print(table)
