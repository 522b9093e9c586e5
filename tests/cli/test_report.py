"""What a run looks like afterwards, and as plain lines: golden files of one fixed run."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.brief_run import brief_run
from tests.cli.hostile import ALL, FORBIDDEN
from tests.durability.simulated_run import Job, simulate
from tests.golden_files import assert_golden
from weft.cli.console import console_on
from weft.cli.exit_code import ExitCode
from weft.cli.reports.outcome import print_outcomes, print_report
from weft.cli.reports.rows import rows
from weft.cli.run.document import document
from weft.cli.run.lines import LineProgress
from weft.core.errors import Failure
from weft.core.events import (
    Event,
    HumanAsked,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeStarted,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine.analysis.trace import Trace

GOLDEN = Path(__file__).parent.parent / "golden"
OUTPUTS = {"summary": "All is well.\nIndeed.", "themes": ["speed", "cost"]}
MISSING = {"translation": "needs broken_tool, which failed"}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def traced(events: list[Event]) -> Trace:
    trace = Trace()
    for event in events:
        trace(event)
    return trace


def stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def reported(events: list[Event], **outputs: object) -> str:
    out = io.StringIO()
    print_report(console_on(out), traced(events), outputs or OUTPUTS, MISSING)
    return stripped(out.getvalue())


def lines(events: list[Event]) -> str:
    out, trace = io.StringIO(), Trace()
    progress = LineProgress(console_on(out), trace)
    for event in events:
        trace(event)
        progress(event)
    return stripped(out.getvalue())


def hostile_run() -> list[Event]:
    node = NodeId("fetch")
    failure = Failure("ToolRaised", ALL, "tool", hint=ALL)
    return [
        RunStarted(RunId("r"), ALL, "", (NodeInfo(node, ALL),), {}),
        NodeStarted(node, 1, 0.0),
        NodeLogged(node, ALL * 20_000, 0.5),
        NodeFinished(node, Outcome("failed", failure=failure), 1.0),
        RunFinished("failed", Usage(), (ALL,), 1.0, (node,)),
    ]


def test_the_report_of_the_brief() -> None:
    assert_golden(GOLDEN / "cli_report.txt", reported(brief_run()))


def test_the_general_limit_has_no_name() -> None:
    node = NodeId("last")
    told = reported(
        [
            RunStarted(RunId("r"), "a", "", (NodeInfo(node, "tool"),), {"": 8}),
            NodeStarted(node, 1, 9.0),
            NodeFinished(node, Outcome("succeeded"), 10.0),
            RunFinished("succeeded", Usage(), (), 10.0, ()),
        ]
    )
    assert "Waiting for a free slot (limit 8) took 90%" in told


def test_the_lines_of_the_brief() -> None:
    assert_golden(GOLDEN / "cli_lines.txt", lines(brief_run()))


def test_a_question_of_an_earlier_part_is_told_as_that() -> None:
    node = NodeId("approve")
    told = lines(
        [
            RunResumed(RunId("r"), 2, "", 1.0),
            RunStarted(RunId("r"), "brief", "", (NodeInfo(node, "ask"),), {}, 1.0),
            NodeStarted(node, 1, 1.0),
            HumanAsked(node, "Send it?", {}, 1.0, recalled=True),
        ]
    )
    assert "brief goes on: 1 node" in told
    assert "approve still asks: Send it?" in told


def test_a_wide_map_is_told_in_tenths() -> None:
    items = tuple(Job(f"notes[{i}]", (float(i),)) for i in range(100))
    told = lines(simulate([Job("notes", (0.0,), children=items, kind="map")]))
    assert told.count("\n") == 13
    assert "notes 50/100 done" in told


def test_a_wide_map_has_one_row_and_its_first_failures() -> None:
    items = tuple(Job(f"notes[{i}]") for i in range(2_000))
    events = [
        NodeFinished(event.node, Outcome("failed", failure=Failure("E", "no")), event.at_s)
        if isinstance(event, NodeFinished) and event.node.endswith("7]")
        else event
        for event in simulate([Job("notes", children=items, kind="map")])
    ]
    found = rows(traced(events))
    assert [row.name for row in found] == [
        "notes",
        *(f"notes[{i}7]" for i in ("", 1, 2, 3, 4)),
        "… and 195 more",
    ]
    assert found[0].note == "2,000 items: 1,800 succeeded, 200 failed"


def test_defaults_among_many_items_are_counted_and_not_green() -> None:
    items = tuple(Job(f"notes[{i}]") for i in range(4))
    failure = Failure("E", "no")
    events = [
        NodeFinished(e.node, Outcome("succeeded", 0, failure, via="default"), e.at_s)
        if isinstance(e, NodeFinished) and e.node in ("notes[1]", "alone")
        else e
        for e in simulate([Job("notes", children=items, kind="map"), Job("alone")])
    ]
    assert rows(traced(events))[0].note == "4 items: 3 succeeded, 1 succeeded (default)"
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, width=100, color_system="standard", legacy_windows=False
    )
    print_outcomes(console, rows(traced(events)))
    assert "\x1b[33msucceeded (default)" in out.getvalue()
    assert out.getvalue().count("\x1b[32msucceeded") == 1


def test_hostile_text_is_shown_as_text() -> None:
    for shown in (reported(hostile_run(), answer=ALL), lines(hostile_run())):
        assert not set(shown) & set(FORBIDDEN)
        assert "[bold red]not bold[/]" in shown
        assert ":smile:" in shown
        assert len(shown) < 20_000


def test_a_flood_is_cut_on_a_terminal_and_whole_in_a_file() -> None:
    flood = "word " * 200_000
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, markup=False, highlight=False, width=100)
    print_report(console, traced(brief_run()), {"flood": flood}, {})
    assert len(out.getvalue()) < 30_000
    assert "1,000,000 characters" in out.getvalue()
    assert len(reported(brief_run(), flood=flood)) >= len(flood.rstrip())


def test_the_document_is_json_whatever_the_values_are() -> None:
    odd = {"nan": float("nan"), "keys": {("a", 1): b"x"}, "hostile": ALL, "set": {1}}
    odd["self"] = odd
    text = document(traced(hostile_run()), odd, MISSING, ExitCode.FAILED)
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert "\n" not in text
    assert found["outputs"]["keys"] == {"('a', 1)": "b'x'"}
    assert found["exit_code"] == 1


def test_the_document_of_the_brief() -> None:
    found = json.loads(document(traced(brief_run()), OUTPUTS, MISSING, ExitCode.FAILED))
    assert found["status"] == "failed"
    assert found["outputs"] == OUTPUTS
    assert found["outcomes"]["notes[5]"]["attempts"] == 3
    assert found["outcomes"]["summary"]["via"] == "fallback"
    assert found["usage"]["tokens"] == sum(n["usage"]["tokens"] for n in found["outcomes"].values())
    timings = found["timings"]
    assert timings["wall_s"] == 16.02
    assert timings["speed_up"] == pytest.approx(timings["nodes_s"] / timings["wall_s"])
    assert timings["critical_path"][0]["node"] == "list_documents"
    assert timings["shares"][0]["doing"] == "slot"
    assert timings["advice"]["speed_up"] == "summary/small"
    assert timings["advice"]["saves_s"] == pytest.approx(2.5)


def test_where_no_slots_are_limited_more_of_them_save_nothing() -> None:
    events = brief_run()
    begun = next(event for event in events if isinstance(event, RunStarted))
    free = [replace(begun, limits={}) if event is begun else event for event in events]
    assert "more slots may save it" in reported(events)
    shown = reported(free)
    assert "waits to be started" in shown
    assert "slot" not in shown


def test_a_long_report_is_cut_and_says_so() -> None:
    events = simulate([Job(f"n{i}") for i in range(300)])
    reasons = tuple(f"reason {i}" for i in range(9))
    leaked = tuple(NodeId(f"n{i}") for i in range(9))
    shown = reported([*events[:-1], RunFinished("partial", Usage(), reasons, 1.0, leaked)])
    assert "flow ended with a partial result in 1.00 s" in shown
    assert "reason 4\n  and 4 more reasons" in shown
    assert "did not stop when cancelled: n0, n1, n2, n3, n4 and 4 more" in shown
    assert "… and 100 more rows; --json has them all" in shown


def test_a_path_of_many_steps_is_told_by_its_longest() -> None:
    chain = [Job(f"n{i}", (1.0 + i % 7,), (f"n{i - 1}",) if i else ()) for i in range(70)]
    shown = reported(simulate(chain))
    assert shown.count("%") == 20
    assert shown.count("(6 shorter steps)") == 10
    assert "Speed up first" not in shown, "no step is worth a word"


def test_waiting_for_the_next_attempt_is_told() -> None:
    shown = reported(simulate([Job("call", (1.0, 1.0), delay_s=8.0)]))
    assert "Waiting for the next attempt of call took 80%." in shown
    assert "Speed up first" not in shown, "there is one node only"
    assert "speed-up" not in shown


def test_a_report_says_nothing_of_speed_where_there_is_nothing_to_say() -> None:
    node = NodeId("cached")
    cached = [
        RunStarted(RunId("r"), "flow", "", (NodeInfo(node, "call"),), {}),
        NodeFinished(node, Outcome("succeeded", 1, via="cache"), 0.5),
        RunFinished("succeeded", Usage(), (), 0.5),
    ]
    twins = [Job("one", (32.4,)), Job("other", (32.41,))]
    for events in (cached, simulate([Job("alone", (5.0,))]), simulate([])):
        shown = reported(events)
        assert "speed-up" not in shown
        assert "Speed up" not in shown
        timings = json.loads(document(traced(events), {}, {}, ExitCode.SUCCEEDED))["timings"]
        assert (timings["speed_up"], timings["advice"]) == (None, None)
    shown = reported(simulate(twins))
    assert "parallel speed-up 2.0x" in shown
    assert "Speed up first" not in shown, "the other takes as long"


def test_a_run_of_nothing_has_a_report() -> None:
    assert "flow succeeded in 0 ms" in reported(simulate([]))
