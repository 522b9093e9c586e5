"""A call whose end nobody knew: whether its node made it once more or was refused is inferred."""

from __future__ import annotations

import pytest

from weft.core.calls import CallId, Doneness, ToolCalled, ToolReturned
from weft.core.errors import ToolRaised
from weft.core.events import NodeFinished, NodeStarted, Outcome
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.core.values import Effect
from weft.durability.calls.cassette import RefusedCalls
from weft.durability.calls.history import RecordedCall
from weft.engine.scheduler.effects import CallSite

A = NodeId("a")
PAY = CallId("tool:aa#0")
FAILURE = ToolRaised("x").failure()
END = NodeFinished(A, Outcome("failed", failure=FAILURE), 9.0)


def begun(attempt: int, at_s: float) -> NodeStarted:
    return NodeStarted(A, attempt, at_s)


def called(at_s: float, effect: Effect = "once") -> ToolCalled:
    return ToolCalled(A, 1, PAY, "pay", {}, effect, "", at_s)


def returned(done: Doneness) -> ToolReturned:
    return ToolReturned(A, 1, PAY, None, FAILURE, done, 3.0)


CALLED: list[Record] = [begun(1, 1.0), called(2.0)]


@pytest.mark.parametrize(
    ("records", "attempt", "at_s"),
    [
        ([*CALLED, END], 1, None),
        ([*CALLED, begun(1, 5.0), END], 1, 5.0),
        ([*CALLED, begun(1, 5.0)], 1, None),
        ([*CALLED, returned("unknown"), begun(1, 5.0), END], 1, 5.0),
        ([*CALLED, returned("done"), begun(1, 5.0), END], 1, None),
        ([*CALLED, returned("not done"), begun(1, 5.0), END], 1, None),
        ([*CALLED, begun(1, 5.0), called(6.0), END], 1, None),
        ([begun(1, 1.0), called(2.0, "unknown"), begun(1, 5.0), END], 1, None),
        ([*CALLED, begun(2, 5.0), END], 1, None),
        ([*CALLED, begun(2, 5.0), END], 2, 5.0),
    ],
    ids=[
        *("made", "resumed", "killed again", "failed", "done", "not done", "repeated"),
        *("may be repeated", "before its retry", "in its retry"),
    ],
)
def test_a_call_was_refused_where_its_node_began_anew_and_made_none(
    records: list[Record], attempt: int, at_s: float | None
) -> None:
    refused = RefusedCalls()
    for record in records:
        refused.take(record)
    call = next(record for record in records if isinstance(record, ToolCalled))
    ended = next((record for record in records if isinstance(record, ToolReturned)), None)
    assert refused.at_s(CallSite(A, attempt), RecordedCall(call, (), ended)) == at_s
