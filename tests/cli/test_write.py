"""`weft write` as a person would type it, over a scripted author."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.workflow.author.script import QUERY, TOOLS, author, layers
from weft.cli.main import app
from weft.testing import FakeModel
from weft.workflow.runtime.models.factory import Models


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "journal.sqlite"))
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, script: FakeModel, *words: str) -> Result:
    monkeypatch.setattr(Models, "client", lambda *_: script)
    command = ["write", QUERY, "--tools", "./tools.py", "--out", "flow.yaml", *words]
    return CliRunner().invoke(app, command)


def test_it_says_what_was_written_and_repaired(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"with": {"query": "{{ topik }}"}}
    result = typed(monkeypatch, author({"write hits": wrong}))
    assert result.exit_code == 0, result.output
    assert "repaired hits: `hits`: nothing here is called `topik`" in result.stderr
    assert "wrote flow.yaml: weft run flow.yaml" in result.stderr
    assert CliRunner().invoke(app, ["check", "flow.yaml"]).exit_code == 0


def test_defects_that_remain_are_told_and_marked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"with": {"query": "{{ topik }}"}}
    result = typed(monkeypatch, author({"write hits": wrong, "repair hits": wrong}))
    assert result.exit_code == 2
    assert "still has defects after 3 rounds" in result.stderr
    assert "# weft write: `hits`" in (folder / "flow.yaml").read_text()


def test_a_file_that_exists_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "flow.yaml").write_text("mine")
    result = typed(monkeypatch, author())
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (folder / "flow.yaml").read_text() == "mine"


def test_an_intention_from_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = {
        "input": [{"name": "topic", "type": "string"}],
        "output": [{"name": "notes", "type": "string"}, {"name": "verdict", "type": "string"}],
    }
    (folder / "form.json").write_text(json.dumps(form))
    script = author()
    result = typed(monkeypatch, script, "--intention", "form.json")
    assert result.exit_code == 0, result.output
    assert "intention" not in layers(script)
    (folder / "form.json").write_text('{"input": []}')
    again = typed(monkeypatch, script, "--intention", "form.json")
    assert again.exit_code == 2
    assert "form.json does not fit" in again.stderr


def test_json_is_the_only_thing_on_stdout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, author(), "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["outputs"]["saved"]["remaining"] == []


def test_a_budget_of_tokens_ends_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(monkeypatch, author(), "--tokens", "50")
    assert result.exit_code != 0
    assert not (folder / "flow.yaml").exists()
