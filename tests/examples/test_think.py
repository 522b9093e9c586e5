"""The examples that think: as files on scripted models, and in Python on a scripted client."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import pytest

import weft
from weft.core.ports import ModelRequest
from weft.testing import FakeModel, MemoryStore
from weft.workflow.runtime.models.factory import Models

FOLDER = Path(__file__).parents[2] / "examples" / "think"


def test_votes_are_decided_before_all_have_answered() -> None:
    answers = ["4 * 3, so the answer is 12.", "The answer is 7."]
    model = FakeModel([answers[0]] * 5 + [answers[1]] * 3)
    result = weft.load(FOLDER / "votes.yaml").run_sync({}, models={"small": model})
    assert result.outputs == {"answer": "12"}
    threads = [node for node in result.outcomes if node.startswith("answer/samples/")]
    assert threads


def test_the_library_is_read_part_by_part_and_cited() -> None:
    asked: list[str] = []

    def script(request: ModelRequest) -> str:
        asked.append(request.messages[-1].content)
        return "The lighthouse opens on Saturdays and Sundays and costs six pounds."

    flow = weft.load(FOLDER / "library.yaml")
    result = flow.run_sync({}, models={"small": FakeModel(script)}, store=MemoryStore())
    assert result.ok, result.missing
    assert "six pounds" in result.outputs["answer"]
    for text in ("Marigold", "146 steps", "seaweed"):
        assert any(text in prompt for prompt in asked)
    assert len(asked) > 3


def test_a_model_that_thinks_gives_a_second_opinion() -> None:
    def script(request: ModelRequest) -> str:
        if request.messages[-1].content.endswith("the skeleton of the answer."):
            return "1. Weight of water\n2. Shape of the hull\n3. Air inside"
        return "Because they push water aside."

    model = FakeModel(script)
    result = weft.load(FOLDER / "careful.yaml").run_sync({}, models={"small": model})
    assert result.ok, result.missing
    assert result.outputs["draft"] == "Because they push water aside."
    assert "push water aside" in result.outputs["opinion"]
    assert len(model.requests) > 2


def test_python(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for door in ("of", "client"):
        monkeypatch.setattr(Models, door, lambda *_: FakeModel(["So the answer is 12."]))
    asyncio.run(runpy.run_path(str(FOLDER / "think.py"))["main"]())
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("direct: ")
    assert said[2].startswith("sample: ")
    assert said[4].startswith("sample:fake: ")
    assert all("12" in line for line in said[::2])
