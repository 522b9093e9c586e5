"""`weft resume` of a question prints what `weft think` or `weft ask` would have printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import go_into, typed
from tests.workflow.history.test_questions import FINISH, HOWMANY, PLAN, TOOLS
from weft.cli.run.session import Session
from weft.core.budget import Budget
from weft.core.calls import ModelAnswered
from weft.core.events import NodeFinished, RunFinished
from weft.core.ids import NodeId
from weft.core.ports import Capabilities, ModelRequest
from weft.core.ports.journal import Record
from weft.testing import FakeModel
from weft.workflow.history.run_history import read_history
from weft.workflow.runtime.journals import open_journal
from weft.workflow.runtime.models.factory import Models

THINK = ("think", "How tall?", "--strategy", "map-reduce", "--document", "tower.txt")
ASK = ("ask", HOWMANY, "--tools", "./tools.py", "--constrain", "never")
CUT = "cut.sqlite"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "tower.txt").write_text("It is a 330 m tall  in all.", "utf-8")
    return tmp_path


def notes(request: ModelRequest) -> str:
    if "take notes" in request.messages[0].content:
        return "Information: height\nQuote: 330 m tall in\nAnswer: 330 m\nConfidence: 5"
    return "It is 330 m tall [1]."


def model(monkeypatch: pytest.MonkeyPatch, script: FakeModel) -> FakeModel:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    return script


def cut_off(before: Callable[[Record], bool]) -> str:
    """Another journal has the latest run, as far as the first record that is `before`."""
    whole = open_journal()
    story = read_history(whole, whole.runs(limit=1)[0].run)
    whole.close()
    records = [numbered.record for numbered in story.records]
    place = next(n for n, record in enumerate(records) if before(record))
    Path(CUT).unlink(missing_ok=True)
    journal = open_journal(CUT)
    claim = journal.begin(story.header)
    journal.append(story.run, records[:place])
    claim.release()
    journal.close()
    return story.run


def answer_ends(record: Record) -> bool:
    return isinstance(record, NodeFinished) and record.node == NodeId("answer")


def second_answer() -> Callable[[Record], bool]:
    answers = count()
    return lambda record: isinstance(record, ModelAnswered) and next(answers) == 1


def test_a_thought_is_shown_as_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    model(monkeypatch, FakeModel(notes))
    began = typed(*THINK)
    assert began.exit_code == 0, began.output
    cut_off(second_answer())
    again = model(monkeypatch, FakeModel(notes))
    resumed = typed("resume", "--journal", CUT)
    assert resumed.exit_code == 0, resumed.output
    assert len(again.requests) == 1
    assert resumed.stdout.startswith("from the record, and not done again: 1 call\n")
    head = "map-reduce: "
    assert resumed.stdout[resumed.stdout.index(head) :] == began.stdout[began.stdout.index(head) :]
    assert "[1] tower.txt 8-22: 330 m tall in" in resumed.stdout
    for said in (began, resumed):
        assert "thread " in said.stdout
        assert "critical path\n" not in said.stdout


def test_the_json_of_a_thought_is_that_of_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    model(monkeypatch, FakeModel(notes))
    began = json.loads(typed(*THINK, "--json").stdout)
    cut_off(second_answer())
    resumed = json.loads(typed("resume", "--journal", CUT, "--json").stdout)
    assert resumed.keys() == began.keys()
    for key in ("run", "outputs", "strategy", "thought", "status", "usage"):
        assert resumed[key] == began[key], key
    assert (began["parts"], began["recalled"]) == (1, {"nodes": 0, "calls": 0})
    assert (resumed["parts"], resumed["recalled"]) == (2, {"nodes": 0, "calls": 1})


def test_an_answer_that_was_found_before_says_where_its_threads_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model(monkeypatch, FakeModel(notes))
    typed(*THINK)
    run = cut_off(lambda record: isinstance(record, RunFinished))
    again = model(monkeypatch, FakeModel(notes))
    resumed = typed("resume", "--journal", CUT)
    assert not again.requests
    assert resumed.stdout.startswith("from the record, and not done again: 1 node\n")
    assert f"answered in an earlier part: weft runs show {run}" in resumed.stdout
    assert resumed.stdout.rstrip().endswith("It is 330 m tall [1].")


def test_an_agent_is_shown_as_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    able = Capabilities(structured_output=True)
    model(monkeypatch, FakeModel([PLAN, FINISH], capabilities=able))
    began = typed(*ASK)
    assert began.exit_code == 0, began.output
    cut_off(answer_ends)
    again = model(monkeypatch, FakeModel([FINISH], capabilities=able))
    resumed = typed("resume", "--journal", CUT)
    assert resumed.exit_code == 0, resumed.output
    assert not again.requests
    assert "not done again: " in resumed.stdout
    tables = [
        [line.split()[:2] for line in told.stdout.splitlines() if " succeeded " in line]
        for told in (began, resumed)
    ]
    assert len(tables[0]) > 4
    assert tables[0] == tables[1]
    assert resumed.stdout.rstrip().endswith("7 million")


def test_the_budget_of_the_command_line_is_that_of_every_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budgets: list[Budget | None] = []

    class Spy(Session):
        def __init__(self, *given: Any, **more: Any) -> None:
            budgets.append(given[2])
            super().__init__(*given, **more)

    able = Capabilities(structured_output=True)
    model(monkeypatch, FakeModel([PLAN, FINISH], capabilities=able))
    assert typed(*ASK, "--tokens", "9000").exit_code == 0
    cut_off(answer_ends)
    monkeypatch.setattr("weft.cli.run.session.Session", Spy)
    assert typed("resume", "--journal", CUT).exit_code == 0
    assert budgets == [Budget(tokens=9000)]
