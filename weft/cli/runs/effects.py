"""The table of calls that must not be repeated: done, not done, or unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.text import clean, one_line
from weft.cli.values import plain
from weft.core.ids import matches, pattern_of
from weft.engine.cassette import OnceCall

_STYLES = {"done": "green", "not done": "yellow", "unknown": "bold red"}
_MOST_ROWS = 200


def print_effects(console: Console, calls: Sequence[OnceCall], run: str) -> None:
    """Every call of a tool whose effect is `once`, and what is known of it. Nothing without any.

    `run`: as `again` names it.
    """
    if not calls:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("once", "node", "called with"):
        table.add_column(column, no_wrap=column != "called with", overflow="fold")
    table.add_column("its effect", no_wrap=True)
    for call in calls[:_MOST_ROWS]:
        table.add_row(
            clean(call.tool),
            Text(clean(call.node)),
            Text(one_line(json.dumps(plain(call.arguments), ensure_ascii=False), 200), "dim"),
            Text(call.done, _STYLES[call.done]),
        )
    console.print(table)
    if len(calls) > _MOST_ROWS:
        console.print(f"… and {len(calls) - _MOST_ROWS:,} more calls; --json has them all")
    unknown = next((call for call in calls if call.done == "unknown"), None)
    if unknown is not None:
        node = clean(unknown.node)
        console.print(
            f"find out, then: weft resume {run} --confirm {node}=done, or {node}=repeat",
            soft_wrap=True,
        )
        pattern = clean(pattern_of(unknown.node))
        alike = [c for c in calls if c.done == "unknown" and matches(pattern, c.node)]
        if len(alike) > 1:
            console.print(f"all {len(alike)} at once: --confirm '{pattern}=done'", soft_wrap=True)
    console.print()


def effect_data(call: OnceCall) -> dict[str, object]:
    """A call as JSON documents have it."""
    return {
        "node": call.node,
        "attempt": call.attempt,
        "tool": call.tool,
        "arguments": plain(call.arguments),
        "done": call.done,
        "failure": plain(call.failure),
        "at_s": call.at_s,
    }
