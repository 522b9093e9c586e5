"""Classes whose records are written as lists, since a run has so many of them: fields by place.

A journal that was written keeps its meaning: a number is never given to another class, a field is
only ever added at the end, and has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.core.calls import ToolCalled, ToolReturned
from weft.core.events import (
    GraphGrew,
    NodeFinished,
    NodeInfo,
    NodeSpent,
    NodeStarted,
    NodeWaiting,
    Outcome,
)


class Layout(NamedTuple):
    """`number` begins the list where nothing else tells the class; then come `fields`."""

    number: int
    fields: tuple[str, ...]


LAYOUTS: Final[Mapping[type, Layout]] = {
    NodeStarted: Layout(1, ("node", "attempt", "at_s", "digest")),
    NodeFinished: Layout(
        2, ("node", "outcome", "at_s", "recalled", "digest", "run_ended", "by_name")
    ),
    Outcome: Layout(3, ("status", "value", "failure", "attempts", "via")),
    ToolCalled: Layout(
        4,
        ("node", "attempt", "call", "tool", "arguments", "effect", "key", "at_s", "stands_for"),
    ),
    ToolReturned: Layout(5, ("node", "attempt", "call", "value", "failure", "done", "at_s")),
    NodeInfo: Layout(
        6,
        (
            *("id", "kind", "parent", "sources", "resource", "may_fail", "weight", "spends"),
            *("attempts", "join", "quorum", "cancels", "streams"),
        ),
    ),
    NodeSpent: Layout(7, ("node", "usage", "at_s", "recalled")),
    NodeWaiting: Layout(8, ("node", "at_s")),
    GraphGrew: Layout(
        9,
        ("parent", "nodes", "at_s", "results", "join", "quorum", "width", "items", "more"),
    ),
}
NUMBERED: Final[Mapping[int, type]] = {layout.number: cls for cls, layout in LAYOUTS.items()}
