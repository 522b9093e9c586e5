"""`weft runs show` says how a run goes on: by an answer, a command, or in Python."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import weft
from tests.cli.command_line import go_into, typed

TWO = """name: two
nodes:
  sure: {ask: "Publish?", schema: {type: boolean}}
  title: {ask: "Which title?"}
outputs: {out: "{{ [sure, title] }}"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go_into(tmp_path, monkeypatch)
    return tmp_path


def python_flow() -> weft.Flow:
    flow = weft.Flow("built")
    flow.output(sure=flow.ask("Publish?", bool), title=flow.ask("Which title?", name="title"))
    return flow


def shown() -> str:
    said = typed("runs", "show", "last")
    assert said.exit_code == 0, said.output
    return said.output


def test_an_answered_run_is_resumed_by_a_command(folder: Path) -> None:
    (folder / "two.yaml").write_text(TWO)
    assert typed("run", "two.yaml", "--run-id", "pub").exit_code == 4
    assert "weft answer pub sure VALUE" in shown()
    assert "go on with it" not in shown()
    assert "weft resume pub" in typed("answer", "pub", "sure", "yes").output
    assert "weft answer pub sure" not in shown()
    assert "weft answer pub title VALUE" in shown()
    assert "go on with it" not in shown()
    typed("answer", "pub", "title", "Tea")
    assert "weft answer" not in shown()
    assert "go on with it: weft resume pub" in shown()
    data = json.loads(typed("runs", "show", "pub", "--json").output)
    assert [question["answered"] for question in data["questions"]] == [True, True]
    assert typed("resume", "pub").exit_code == 0
    assert "go on with it" not in shown()
    assert "asks:" not in shown()


def test_a_run_made_in_python_is_resumed_there() -> None:
    result = python_flow().run_sync(run="made")
    assert result.status == "asking"
    asked = [question.node for question in result.questions]
    for node in asked:
        assert f"weft answer made {node} VALUE" in shown()
        word = "Tea" if node == "title" else "yes"
        said = typed("answer", "made", node, word).output
        assert "flow.resume('made')" in said
        assert "weft resume" not in said
    assert "go on with it: in Python: flow.resume('made')" in shown()
    assert "weft resume" not in shown()


def test_what_it_says_is_what_works() -> None:
    flow = python_flow()
    result = flow.run_sync(run="made")
    for question in result.questions:
        typed("answer", "made", question.node, "Tea" if question.node == "title" else "yes")

    async def resume() -> weft.FlowResult:
        return await flow.resume("made").wait()

    resumed = asyncio.run(resume())
    assert resumed.outputs == {"sure": True, "title": "Tea"}


def test_a_failed_run_made_in_python_names_python() -> None:
    flow = weft.Flow("broken")
    flow.output(out=flow.call(int, "no number"))
    assert flow.run_sync(run="bad").status == "failed"
    assert "go on with it: in Python: flow.resume('bad')" in shown()
