"""Studies on typed forms: what a form's score is, and studies with fakes in place of the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from evals import optimise_forms
from evals.engine.rows import Row
from evals.optimise_forms import HeldModel, bfcl_error, fields_right, forms, order, section, study
from evals.optimise_reviews import rows, study_rows
from evals.planning.quality.bfcl import items
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.testing import FakeModel, Reply

STATED = {order(number)["text"]: order(number)["expected"] for number in range(80)}
ADD: dict[str, Any] = {
    "name": "add",
    "description": "Adds.",
    "parameters": {
        "type": "dict",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def test_every_field_is_stated_in_the_text() -> None:
    for text, expected in STATED.items():
        assert all(str(value) in text for value in expected.values())


def test_the_score_is_the_share_of_right_fields() -> None:
    case = weft.Case(id="1", inputs={}, expected=order(1)["expected"])
    right = dict(case.expected)

    def score(**other: object) -> float:
        return fields_right(case, {"order": {**right, **other}}).value

    assert score() == 1
    assert score(item=f" {right['item'].upper()}s") == 1
    assert score(quantity=str(right["quantity"])) == pytest.approx(0.8)
    assert score(quantity=right["quantity"] + 1, city="") == pytest.approx(0.6)


def test_a_study_of_forms_finds_the_example_that_a_fake_needs() -> None:
    task = replace(forms(quick=True), cases=[order(number) for number in range(80)], calls=500)
    found = study(task, FakeModel(fills_by_example))
    figures = named(study_rows("forms", found))
    assert figures["study", "improved"] == 1
    assert figures["baseline", "quality"] == pytest.approx(0.8)
    assert figures["best", "quality"] == 1
    assert figures["best", "quality_change"] == pytest.approx(0.2)
    assert figures["study", "held_out"] == figures["best", "quality_cases"] >= 30
    assert figures["study", "calls"] <= 500
    every = named(rows([found, found]))
    assert every["study", "improved_share"] == 1
    assert every["study", "studies"] == 2


def fills_by_example(request: ModelRequest) -> Reply:
    """The right order where the prompt has an example, else one with a wrong city."""
    asked = request.messages[-1].content
    expected = next(value for text, value in STATED.items() if text in asked)
    wrong = {} if "Order:" in asked else {"city": "Rome"}
    return Reply(json.dumps({**expected, **wrong}))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    folder = tmp_path / "planner" / "bfcl_v4"
    (folder / "possible_answer").mkdir(parents=True)
    questions = [f"Add {number} and 4." for number in range(80)]
    write(
        folder / "BFCL_v4_simple_python.json",
        [
            {"id": f"s{n}", "question": [[{"role": "user", "content": each}]], "function": [ADD]}
            for n, each in enumerate(questions)
        ],
    )
    write(
        folder / "possible_answer" / "BFCL_v4_simple_python.json",
        [
            {"id": f"s{n}", "ground_truth": [{"add": {"a": [n], "b": [4]}}]}
            for n in range(len(questions))
        ],
    )
    return tmp_path


def write(path: Path, lines: list[Mapping[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


@pytest.mark.usefixtures("data")
def test_bfcl_is_scored_by_its_own_check() -> None:
    item = items("simple_python")[3]
    assert bfcl_error(item, '{"a": 3, "b": 4}') == ""
    assert bfcl_error(item, '{"a": 3, "b": 5}') == "wrong_value"
    assert bfcl_error(item, '{"a": 3}') == "missing_required"
    assert bfcl_error(item, '{"a": 3, "b":') == "no_json"


@pytest.mark.usefixtures("data")
def test_without_headroom_bfcl_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = FakeModel(['{"a": 1000, "b": 4}'])
    schemas = {item.question: item.tools[0].parameters for item in items("simple_python")}
    monkeypatch.setattr(optimise_forms, "LocalModel", lambda _name: inner)
    figures = named(section("bfcl_simple", quick=True))
    assert figures["baseline", "quality"] == 0
    assert ("study", "improved") not in figures
    assert all(request.schema in schemas.values() for request in inner.requests)


def test_without_data_bfcl_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    (row,) = section("bfcl_simple", quick=True)
    assert row.value is None
    assert "set WEFT_DATA" in row.metric


def test_an_answer_is_held_to_the_longest_question_in_the_prompt() -> None:
    inner = FakeModel(["{}"])
    held = HeldModel(inner, {"Add 1": {"title": "short"}, "Add 11": {"title": "long"}})

    async def asked() -> None:
        async for _ in held.generate(ModelRequest(messages=(Message("user", "Do: Add 11"),))):
            pass

    asyncio.run(asked())
    assert inner.requests[0].schema == {"title": "long"}


def named(found: Any) -> dict[tuple[str, str], float]:
    every: list[Row] = list(found)
    return {(row.system, row.metric): row.value for row in every if row.value is not None}
