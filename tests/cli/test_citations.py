"""What an answer's markers stand for is printed, written to the trace, and harmless."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.hostile import ALL, FORBIDDEN
from weft.cli.main import app
from weft.cli.threads.report import citations
from weft.cli.threads.trace_file import write_trace
from weft.core.ports import ModelRequest
from weft.reasoning.evidence import Evidence
from weft.reasoning.thought import Thought
from weft.testing import FakeModel
from weft.workflow.runtime.models.factory import Models

SOURCE = "[1] tower.txt 8-22: 330 m tall in"


def script(request: ModelRequest) -> str:
    if "take notes" in request.messages[0].content:
        return "Information: height\nQuote: 330 m tall in\nAnswer: 330 m\nConfidence: 5"
    return "It is 330 m tall [1]."


def typed(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    (folder / "tower.txt").write_text("It is a 330 m tall  in all.", "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(Models, "client", lambda *_: FakeModel(script))
    asked = ["think", "How tall?", "--strategy", "map-reduce", "--document", "tower.txt"]
    return CliRunner().invoke(app, [*asked, *words])


def test_sources_are_printed_below_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = typed(tmp_path, monkeypatch, "--trace", "t.md")
    assert result.exit_code == 0, result.output
    assert result.stdout.index("330 m tall [1].") < result.stdout.index(SOURCE)
    assert f"## Sources\n\n- `{SOURCE}`\n" in (tmp_path / "t.md").read_text("utf-8")


def test_sources_are_part_of_the_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = typed(tmp_path, monkeypatch, "--json", "--trace", "t.json")
    (piece,) = json.loads(result.stdout)["thought"]["evidence"]
    assert (piece["marker"], piece["document"], piece["start"], piece["end"]) == (
        "1", "tower.txt", 8, 22,
    )  # fmt: skip
    assert json.loads((tmp_path / "t.json").read_text("utf-8"))["evidence"][0]["start"] == 8


def test_many_sources_are_counted_and_all_are_harmless(tmp_path: Path) -> None:
    thought = Thought("x", evidence=(Evidence(ALL, ALL, 0, 1, ALL),) * 30)
    lines = list(citations(thought))
    assert len(lines) == 21
    assert lines[-1] == "and 10 more"
    for name in ("t.md", "t.json"):
        write_trace(tmp_path / name, "chorus", "Why?", thought)
        text = (tmp_path / name).read_text("utf-8")
        assert not any(bad in text for bad in FORBIDDEN)
