"""What the command line shows of circuit breakers: while a run goes on, and afterwards."""

from __future__ import annotations

import io

from weft.cli.console import console_on
from weft.cli.reports.outcome import print_report
from weft.cli.run.lines import LineProgress
from weft.cli.run.listeners import NodeOutputLog
from weft.core.events import (
    BreakerChanged,
    Event,
    NodeFinished,
    NodeInfo,
    NodeStarted,
    Outcome,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine.analysis.trace import Trace

A = NodeId("a")
EVENTS: tuple[Event, ...] = (
    RunStarted(RunId("r"), "f", "2026-01-01T00:00:00Z", (NodeInfo(A, "tool"),), {}),
    NodeStarted(A, 1, 0.0),
    BreakerChanged(A, "server", "shop\x1b[31m", "open", 1.5, "f", "", "5 calls failed"),
    NodeFinished(A, Outcome("succeeded", 1), 2.0),
    RunFinished("succeeded", Usage(), (), 2.0),
)


def test_a_change_is_a_line_and_stands_in_the_report() -> None:
    out, trace, outputs = io.StringIO(), Trace(), NodeOutputLog()
    console = console_on(out)
    progress = LineProgress(console, trace)
    for event in EVENTS:
        trace(event)
        progress(event)
        outputs(event)
    assert "[    1.50 s] circuit breaker of the server shop" in out.getvalue()
    assert " is open: 5 calls failed" in out.getvalue()
    assert next(iter(outputs.of[A].logs)).endswith("is open: 5 calls failed")
    print_report(console, trace, {}, {})
    assert ": open at 1.50 s, 5 calls failed" in out.getvalue()
    assert "\x1b" not in out.getvalue()
