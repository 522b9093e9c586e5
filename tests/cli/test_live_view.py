"""The live picture: never wider or higher than the terminal, whatever happens in the run."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.cli.brief_run import brief_run
from tests.cli.hostile import ALL, FORBIDDEN
from tests.durability.simulated_run import Job, simulate
from weft.cli.run.listeners import NodeOutputLog
from weft.cli.run.live import RunView
from weft.core.budget import Budget
from weft.core.events import Event, NodeInfo, NodeStarted, NodeStreamed, RunStarted
from weft.core.ids import NodeId, RunId
from weft.engine.analysis.trace import Trace


def frame(
    events: list[Event], until_s: float, width: int = 100, height: int = 24, **budget: int
) -> str:
    trace, speech = Trace(), NodeOutputLog()
    for event in events:
        if event.at_s <= until_s:
            trace(event)
            speech(event)
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    with console.capture() as capture:
        console.print(RunView(trace, speech, Budget(**budget), until_s))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_a_row_for_each_running_node_with_its_speed() -> None:
    shown = frame(brief_run(), 2.0, tokens=5_000)
    assert "brief  2.00 s  3 done  4 running  1 failed  1 skipped" in shown
    assert "budget 210/5,000 tokens" in shown
    assert "1/12" in shown
    row = next(line for line in shown.splitlines() if line.startswith("    notes[3]"))
    assert row.split()[:7] == ["notes[3]", "model", "1.6", "s", "32", "tok", "21"]
    assert "critical path so far  list_documents 420 ms → notes 10 ms → notes[1] 1.57 s" in shown


def test_retries_and_questions_say_what_they_wait_for() -> None:
    assert "attempt 1 failed, next in 0.5 s" in frame(brief_run(), 2.6)
    assert "waits for your answer" in frame(brief_run(), 10.0)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("height", [8, 24])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    items = tuple(Job(f"a_rather_long_name[{i}]", (5.0,)) for i in range(10_000))
    events = simulate([Job("a_rather_long_name", (0.0,), children=items, kind="map")])
    lines = frame(events, 3.0, width, height).splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert any("more" in line for line in lines)
    assert any("0/10,000" in line for line in lines)


def test_hostile_names_and_words_do_not_reach_the_terminal() -> None:
    node = NodeId("n")
    events: list[Event] = [
        RunStarted(RunId("r"), ALL, "", (NodeInfo(node, ALL),), {}),
        NodeStarted(node, 1, 0.0),
        NodeStreamed(node, ALL * 5_000, 1, 1.0),
    ]
    shown = frame(events, 1.0)
    assert not set(shown) & set(FORBIDDEN)
    assert len(shown) < 1_000
