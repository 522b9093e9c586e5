"""A run to write into journals under test."""

from __future__ import annotations

from weft.core.calls import CallId, ToolReturned
from weft.core.events import NodeLogged
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Record, RunHeader

RUN = RunId("run-1")
WALL = "2026-01-01T00:00:00+00:00"


def header(run: RunId = RUN) -> RunHeader:
    return RunHeader(run, "flow", WALL, "0.1.0")


def line(number: int) -> NodeLogged:
    return NodeLogged(NodeId("n"), f"line {number}", float(number))


def large(number: int) -> ToolReturned:
    """A record whose value is kept apart."""
    value = f"value {number} " * 50
    return ToolReturned(NodeId("n"), 1, CallId("tool:0#0"), value, None, "done", 1.0)


def read(journal: Journal, run: RunId = RUN) -> list[Record]:
    return [numbered.record for numbered in journal.records(run)]
