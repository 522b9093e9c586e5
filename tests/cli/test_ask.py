"""`weft ask` as a person would type it, over a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

import weft
from tests.workflow.apps.test_ask import FINISH, PLAN, QUESTION, TOOLS, model
from weft.agents.names import AGENTS, AgentName
from weft.cli.main import app
from weft.core.ports import Capabilities
from weft.testing import FakeModel
from weft.workflow.runtime.models.factory import Models


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, script: FakeModel, *words: str) -> Result:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    return CliRunner().invoke(app, ["ask", QUESTION, "--tools", "./tools.py", *words])


def test_the_help_names_all_agents() -> None:
    assert tuple(AGENTS) == get_args(AgentName)


def test_the_answer_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, model(PLAN, FINISH), "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == ["answer", "6,531,000"]


def test_the_plan_is_printed_as_it_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = typed(monkeypatch, model(PLAN, FINISH), "--show-plan")
    said = [line for line in result.stderr.splitlines() if line.startswith("plan1 │ ")]
    assert said == [f"plan1 │ {line}" for line in PLAN.splitlines()]


def test_a_plan_is_saved_and_is_a_workflow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, model(PLAN, FINISH), "--save", "plan.yaml")
    assert result.exit_code == 0, result.output
    assert "wrote plan.yaml" in result.stderr
    flow = weft.load(folder / "plan.yaml")
    flow.check()
    assert list(flow.document.nodes) == ["s1", "s2", "s3", "answer"]


def test_no_plan_is_saved_after_a_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, FakeModel(["no plan at all"]), "--save", "plan.yaml")
    assert result.exit_code == 1
    assert not (folder / "plan.yaml").exists()
    assert "answer" in result.stdout


def test_a_model_is_held_to_the_bounds_that_are_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = FakeModel(
        [PLAN, FINISH], capabilities=Capabilities(structured_output=True, grammar=True)
    )
    result = typed(monkeypatch, script, "--grammar", "chars=77", "--grammar", "items=5")
    assert result.exit_code == 0, result.output
    assert script.requests[0].grammar is not None
    assert "{0,77}" in script.requests[0].grammar


def test_json_is_the_only_thing_on_stdout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, model(PLAN, FINISH), "--json", "--show-plan")
    found = json.loads(result.stdout)
    assert found["outputs"] == {"answer": "6,531,000"}
    assert found["status"] == "succeeded"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent", "fast"], "expected one of compiler, divide, react, parallel-react, plan"),
        (["--constrain", "yes"], "expected one of auto, line, plan, never"),
        (["--grammar", "chars"], "is not BOUND=N"),
        (["--grammar", "words=3"], "expected one of chars, items, depth, digits, decimals"),
        (["--api-key-env", "KEY"], "goes with --base-url"),
        (["--rounds", "0"], "greater than or equal to 1"),
        (["--deadline", "soon"], "expected a duration"),
        (["--save", "/elsewhere/plan.yaml"], "lies outside the folder"),
        (["--tools", "./missing.py"], "there is no file"),
    ],
)
def test_wrong_words_are_told_before_anything_runs(
    words: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = model(PLAN, FINISH)
    result = typed(monkeypatch, script, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
    assert not script.requests


def test_an_empty_question_and_a_model_that_is_none(folder: Path) -> None:
    empty = CliRunner().invoke(app, ["ask", " "])
    assert (empty.exit_code, "question is empty" in empty.output) == (2, True)
    wrong = CliRunner().invoke(app, ["ask", "what?", "--model", "qwen"])
    assert (wrong.exit_code, "expected local:NAME" in wrong.output) == (2, True)
