"""`weft ask --catalogue` as a person would type it, and the key `catalogue` of a workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import weft
from tests.agents.catalogue.made_up import ROWS
from weft.agents.catalogue import CatalogueOptions
from weft.cli.main import app
from weft.core.errors import BuildError
from weft.core.ports import Capabilities
from weft.testing import FakeModel
from weft.workflow.runtime.models.factory import Models

QUESTION = "How much rain does Bern expect?"
PLAN = '1. getRainForecast(town="Bern")\n2. join($1)\n'
FINISH = '{"thought": "read", "decision": "finish", "answer": "12 mm"}'
TOOLS = '''
import weft

@weft.tool
def getRainForecast(town: str) -> str:
    """How much rain a town expects."""
    return "12 mm"

@weft.tool
def findHotel(town: str) -> str:
    """Hotels with a free room."""
    return "none"
'''
FLOW = """\
name: rain
models: {chat: local:smollm2-135m-instruct}
tools:
  getRainForecast: ./tools.py:getRainForecast
  findHotel: ./tools.py:findHotel
nodes:
  answer:
    model: chat
    prompt: How much rain does Bern expect?
    tools: [getRainForecast, findHotel]
    agent: {loop: compiler, catalogue: {file: ./catalogue.jsonl, tokens: 500}}
outputs: {answer: "{{ answer }}"}
"""


def model(*replies: str) -> FakeModel:
    return FakeModel(replies, capabilities=Capabilities(structured_output=True))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "catalogue.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, script: FakeModel, *words: str) -> Result:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    return CliRunner().invoke(app, ["ask", QUESTION, *words])


def test_a_catalogue_is_planned_with_without_any_function(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN)
    words = ("--catalogue", "catalogue.jsonl", "--agent", "plan", "--json")
    result = typed(monkeypatch, script, *words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outputs"] == {"answer": PLAN}
    prompt = script.requests[0].messages[-1].content
    assert "getRainForecast" in prompt
    assert "bookTrain" not in prompt


def test_functions_of_the_same_names_are_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN, FINISH)
    words = ("--catalogue", "catalogue.jsonl", "--tools", "./tools.py", "--quiet")
    result = typed(monkeypatch, script, *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == ["answer", "12", "mm"]
    assert "findHotel" not in script.requests[0].messages[-1].content


def test_the_given_tools_alone_are_limited_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN, FINISH)
    result = typed(monkeypatch, script, "--tools", "./tools.py", "--catalogue-tokens", "200")
    assert result.exit_code == 0, result.output
    assert "findHotel" not in script.requests[0].messages[-1].content


def test_a_catalogue_may_lie_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = folder / "else" / "where"
    there.mkdir(parents=True)
    (folder / "catalogue.jsonl").rename(there / "catalogue.jsonl")
    words = ("--catalogue", str(there / "catalogue.jsonl"), "--tools", "./tools.py")
    assert typed(monkeypatch, model(PLAN, FINISH), *words).exit_code == 0


def test_tools_that_cannot_run_are_an_error_with_a_way_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN, FINISH)
    result = typed(monkeypatch, script, "--catalogue", "catalogue.jsonl")
    said = " ".join(result.output.replace("│", " ").split())
    assert result.exit_code == 2
    assert "has a function, so none can be called" in said
    assert "plan" in said
    assert not script.requests


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--catalogue", "missing.jsonl"], "does not exist"),
        (["--catalogue-tokens", "10"], "greater than or equal to 200"),
        (["--chooser", "model"], "goes with --catalogue"),
        (["--catalogue", "catalogue.jsonl", "--chooser", "best"], "expected one of lexical, model"),
        (["--agent", "plan", "--schema", '{"type": "string"}'], "answers with a plan"),
    ],
)
def test_wrong_words_are_told_before_anything_runs(
    words: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN)
    result = typed(monkeypatch, script, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
    assert not script.requests


def test_a_workflow_names_a_catalogue(folder: Path) -> None:
    (folder / "flow.yaml").write_text(FLOW)
    flow = weft.load(folder / "flow.yaml")
    flow.check()
    script = model(PLAN, FINISH)
    result = flow.run_sync({}, models={"chat": script})
    assert result.ok, result.reasons
    assert result.outputs["answer"] == "12 mm"
    assert "findHotel" not in script.requests[0].messages[-1].content


@pytest.mark.parametrize(
    ("catalogue", "said"),
    [
        ("{file: ./none.jsonl}", "there is no catalogue"),
        ("{file: ../catalogue.jsonl}", "leads out of the workflow's folder"),
        ("{tokens: 5}", "200"),
        ("{chooser: best}", "lexical"),
        ("{size: 5}", "size"),
    ],
)
def test_defects_of_the_key_have_a_place(folder: Path, catalogue: str, said: str) -> None:
    text = FLOW.replace("{file: ./catalogue.jsonl, tokens: 500}", catalogue)
    (folder / "flow.yaml").write_text(text)
    with pytest.raises(BuildError, match=said) as raised:
        weft.load(folder / "flow.yaml").check()
    assert "flow.yaml:11" in str(raised.value)


def test_python_has_the_same_option(folder: Path) -> None:
    options = weft.AgentOptions(catalogue=CatalogueOptions("catalogue.jsonl", tokens=500))
    script = model(PLAN)
    answer = weft.ask_sync(QUESTION, model=script, agent="plan", options=options)
    assert answer.value == PLAN
    assert [step.tool for step in answer.plans[0].steps] == ["getRainForecast"]
