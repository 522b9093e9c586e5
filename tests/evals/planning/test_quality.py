"""The quality section on scripted models: what is counted, and what is skipped in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from evals.engine.rows import Lookup
from evals.planning.effort import QUICK, Skipped
from evals.planning.quality import evaluation, models
from evals.planning.quality.benchmarks import BENCHMARKS, Question, some
from evals.planning.quality.planned import kind, planned
from evals.planning.quality.rows import Graded, grade_rows
from weft.core.errors import ModelNotFound, PlanError
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep
from weft.planner.text.reader import read
from weft.testing import FakeModel

TOOLS = (
    ToolSpec(
        "price",
        "The price of a thing.",
        {
            "type": "object",
            "properties": {"item": {"type": "string"}, "year": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]},
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('1. price(item="tea")\n', "no_join"),
        ('1. price(item="tea', "no_join"),
        ('1. cost(item="tea")\n2. join()\n', "unknown_tool"),
        ('price(item="tea")\n1. join()\n', "no_number"),
        ('2. price(item="tea")\n1. price(item="tea")\n3. join()\n', "numbering"),
        ("1. price()\n2. join()\n", "missing_argument"),
        ('1. price(item="tea", colour="red")\n2. join()\n', "unknown_argument"),
        ("1. price(item=$4)\n2. join()\n", "wrong_reference"),
        ('1. price(item="a")\n2. price(item=$1.name)\n3. join()\n', "wrong_reference"),
        ('1. price(item="tea", year="old")\n2. join()\n', "wrong_argument"),
        ("1. price(item=tea)\n2. join()\n", "syntax"),
    ],
)
def test_what_is_wrong_with_a_plan_has_a_class(text: str, expected: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(text, TOOLS)
    assert kind(caught.value) == expected


def test_a_plan_is_asked_for_and_its_tokens_counted() -> None:
    good = FakeModel(['1. price(item="tea")\n2. join($1)\n'])
    found = asyncio.run(planned(good, "never", "How much is tea?", TOOLS))
    assert found.plan is not None
    assert found.plan.steps == (PlanStep(1, "price", {"item": "tea"}),)
    assert found.usage.completion_tokens > 0
    bad = FakeModel(["I think tea is cheap."])
    found = asyncio.run(planned(bad, "never", "How much is tea?", TOOLS))
    assert (found.plan, found.error) == (None, "no_join")


def test_rows_hold_means_shares_and_classes() -> None:
    graded = [
        Graded({"f1": 1.0, "edges": None}, "", "", 10),
        Graded({"f1": 0.5, "edges": 0.5}, "", "other_calls", 20),
        Graded({"f1": 0.0, "edges": 0.0}, "no_join", "", 30),
    ]
    figures = Lookup(grade_rows("b", "m, free", graded, 2.0))
    assert figures("b", "m, free", "f1") == 0.5
    assert figures("b", "m, free", "edges") == 0.25
    assert figures("b", "m, free", "invalid_plans") == pytest.approx(1 / 3)
    assert figures("b", "m, free", "invalid: no_join") == 1
    assert figures("b", "m, free", "wrong: other_calls") == 1
    assert figures("b", "m, free", "completion_tokens") == 20


@pytest.mark.usefixtures("planner_data")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_questions_are_the_same_each_time(name: str) -> None:
    assert [one.id for one in some(name, 5)] == [one.id for one in some(name, 5)]
    assert len({one.id for one in some(name, 5)}) == 5


@pytest.mark.usefixtures("planner_data")
def test_references_are_no_literals_for_bfcl() -> None:
    question = some("bfcl_parallel", 1)[0]
    text = "1. x(a=1)\n2. x(a=$1)\n3. join()\n"
    assert question.score(read(text)) == ({"ast_accuracy": 0.0}, "reference")


def _one_question() -> dict[str, Any]:
    def score(plan: Plan) -> tuple[dict[str, float | None], str]:
        return {"right": 1.0}, ""

    return {"tea": lambda: [Question("1", "How much is tea?", TOOLS, score, {"right": 0.0})]}


def test_a_model_that_is_not_here_is_skipped_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def opened(served: models.Served) -> AsyncIterator[FakeModel]:
        if served.name == "vllm":
            raise ModelNotFound("no weights")
        yield FakeModel(['1. price(item="tea")\n2. join()\n'])

    monkeypatch.setattr(evaluation, "opened", opened)
    monkeypatch.setattr(evaluation, "BENCHMARKS", _one_question())
    monkeypatch.setattr(evaluation, "some", lambda name, count: _one_question()[name]())
    rows = asyncio.run(evaluation.run(QUICK))
    figures = Lookup(rows)
    assert figures("tea", "local, free", "right") == 1.0
    assert figures("tea", "local, free", "invalid_plans") == 0.0
    assert any(row.system == "vllm" and row.metric == "skipped: no weights" for row in rows)
    assert any(row.metric == "model" and "prompt plan-" in row.unit for row in rows)


def test_no_model_at_all_skips_the_section(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def opened(served: models.Served) -> AsyncIterator[FakeModel]:
        if served.name:
            raise ModelNotFound("no weights")
        yield FakeModel([""])

    monkeypatch.setattr(evaluation, "opened", opened)
    monkeypatch.setattr(evaluation, "BENCHMARKS", _one_question())
    monkeypatch.setattr(evaluation, "some", lambda name, count: _one_question()[name]())
    with pytest.raises(Skipped, match="no model"):
        asyncio.run(evaluation.run(QUICK))
