"""`weft ask --facts --goal` as a person would type it, and the key `rehearsal` of a workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import weft
from weft.cli.main import app
from weft.core.errors import BuildError
from weft.core.ports import Capabilities
from weft.testing import FakeModel
from weft.workflow.runtime.models.factory import Models

TOOLS = '''
import weft

@weft.tool(needs=["at(?here)", "next(?here, {room})"], makes=["not at(*)", "at({room})"], fill=True)
def goto(room: str) -> str:
    """Go next door."""
    return room

@weft.tool
def grasp(thing: str) -> str:
    """Take a thing."""
    return thing
'''
FACTS = """\
# where the robot is
- at(hall)
- next(hall, kitchen)
- "next(kitchen, hall)"
"""
FLOW = """\
name: errand
models: {chat: local:smollm2-135m-instruct}
tools:
  goto: ./tools.py:goto
  grasp: {use: "./tools.py:grasp", needs: [at(kitchen)], makes: ["holding({thing})"]}
nodes:
  answer:
    model: chat
    prompt: Fetch the apple.
    tools: [goto, grasp]
    agent:
      loop: compiler
      rehearsal: {facts: ./world.yml, goals: ["holding(apple)", at(hall)], states: 50}
outputs: {answer: "{{ answer }}"}
"""
PLAN = '1. grasp(thing="apple")\n2. join($1)\n'
FINISH = '{"thought": "", "next": {"answer": "here"}}'


def model(*replies: str) -> FakeModel:
    return FakeModel(replies, capabilities=Capabilities(structured_output=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "world.yml").write_text(FACTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, script: FakeModel, *words: str) -> Result:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    return CliRunner().invoke(app, ["ask", "q", "--tools", "./tools.py", *words])


def test_the_plan_is_shown_with_its_inserted_steps(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--facts", "world.yml", "--goal", "at(kitchen)", "--agent", "plan", "--json")
    result = typed(monkeypatch, model("1. join()\n"), *words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outputs"]["answer"] == (
        '# inserted by the rehearsal for the goals\n1. goto(room="kitchen")\n2. join()\n'
    )


def test_a_plan_that_worked_is_saved_with_its_orders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = '1. goto(room="kitchen")\n2. goto(room="hall")\n3. join($2)\n'
    words = ("--facts", "world.yml", "--save", "plan.yaml", "--quiet")
    result = typed(monkeypatch, model(plan, FINISH), *words)
    assert result.exit_code == 0, result.output
    saved = weft.load(folder / "plan.yaml")
    assert saved.nodes["s2"].after == ["s1"]
    saved.check()


@pytest.mark.parametrize(
    ("facts", "place", "why"),
    [
        ("at: hall\n", "1:1", "the file is no list of facts"),
        ("- at(hall)\n- at: hall\n", "2:3", "this is no fact"),
        ("- at(hall)\n- true\n", "2:3", "this is no fact"),
        ("- [at(hall)]\n", "1:3", "this is no fact"),
        ("- at(hall\n", "1:3", "a comma or ) is expected"),
        ("- not at(hall)\n", "1:3", "what is not listed does not hold"),
        ("- at({room})\n", "1:3", "is a pattern, not a fact"),
        ("- !!python/object/apply:os.system [ls]\n", "1:3", ""),
        ("- &a at(hall)\n- *a\n- [*a, *a]\n", "", ""),
        ("", "1:1", ""),
        ("\x00", "", ""),
    ],
)
def test_hostile_files_of_facts_are_refused_at_their_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, facts: str, place: str, why: str
) -> None:
    (folder / "world.yml").write_text(facts)
    script = model(PLAN, FINISH)
    result = typed(monkeypatch, script, "--facts", "world.yml")
    assert result.exit_code == 2, result.output
    assert f"world.yml:{place}" in result.output
    assert why in result.output
    assert not script.requests


def test_a_goal_that_is_no_fact_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, model(PLAN), "--goal", "at(kitchen")
    assert result.exit_code == 2
    assert "'at(kitchen' is no fact" in result.output.replace("\n", " ")


def test_a_workflow_declares_facts_of_tools_and_of_the_world(folder: Path) -> None:
    (folder / "flow.yaml").write_text(FLOW)
    flow = weft.load(folder / "flow.yaml")
    flow.check()
    assert weft.loads(flow.to_yaml(), file=str(folder / "flow.yaml")).document == flow.document
    result = flow.run_sync({}, models={"chat": model(PLAN, FINISH)})
    assert result.status == "succeeded", result.reasons
    calls = [event for event in result.outcomes if event.rpartition("/")[2].startswith("s")]
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("at(hall)]", "at(hall]", "is no fact"),
        ("[at(kitchen)]", "[at(]", "is no fact"),
        ("[at(kitchen)]", '["at({rom})"]', "has no parameter 'rom'"),
        ("./world.yml", "../world.yml", "leads out of the workflow's folder"),
        ("./world.yml", "./none.yml", "cannot read the file"),
        ("states: 50", "states: 0", "greater than"),
        ("loop: compiler", "loop: react", "writes no plan to rehearse"),
        ('"./tools.py:grasp", needs: [at(kitchen)]', '"./tools.py:grasp", fill: true', ""),
    ],
)
def test_a_workflow_is_checked_where_it_is_wrong(
    folder: Path, old: str, new: str, why: str
) -> None:
    assert old in FLOW
    (folder / "flow.yaml").write_text(FLOW.replace(old, new))
    if not why:
        weft.load(folder / "flow.yaml").check()
        return
    with pytest.raises(BuildError) as caught:
        weft.load(folder / "flow.yaml").check()
    assert why in str(caught.value)


def test_servers_have_no_facts(folder: Path) -> None:
    text = FLOW.replace(
        "  goto: ./tools.py:goto", "  goto: ./tools.py:goto\n  m: {memory: ./m.db, fill: true}"
    )
    (folder / "flow.yaml").write_text(text)
    with pytest.raises(BuildError, match="`fill` does not go with a memory"):
        weft.load(folder / "flow.yaml")
