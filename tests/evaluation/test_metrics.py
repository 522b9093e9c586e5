"""Metrics: what they say of an answer, and that their own failures say nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.evaluation.flows import QA, answering
from weft.errors import BuildError
from weft.testing import FakeModel


def scored(metric: Any, answer: Any, expected: Any) -> float | str:
    """The score of one answer by a metric; or why there is none."""
    flow = weft.Flow("given")
    flow.output(answer=flow.value(flow.input("answer", {})))
    row = {"inputs": {"answer": answer}, "expected": expected}
    result = weft.evaluate_sync(flow, [row], metric, durability="none")
    (case,) = result.cases
    name = result.main
    return case.scores[name].value if name in case.scores else case.unscored[name]


@pytest.mark.parametrize(
    ("metric", "answer", "expected", "value"),
    [
        ("exact", " yes\n", "yes", 1.0),
        ("exact", "Yes", "yes", 0.0),
        ("exact", 3, "3", 1.0),
        ("exact", True, 1, 0.0),
        ("exact", [1, {"a": "x "}], [1.0, {"a": "x"}], 1.0),
        ("numeric", "It is 1,250 or 12.5", 12.5, 1.0),
        ("numeric:0.1", "12.45", "12.5", 1.0),
        ("numeric:0.01", "12.45", "12.5", 0.0),
        ("numeric", "none", 1, 0.0),
        ("f1", "the red fox", "a red fox", 2 / 3),
        ("f1", "blue", ["red", "blue"], 1.0),
        ("f1", "", "red", 0.0),
        ({"use": "schema", "schema": {"type": "integer"}}, 3, None, 1.0),
        ("schema", "3", {"type": "integer"}, 0.0),
    ],
)
def test_built_in_metrics(metric: Any, answer: Any, expected: Any, value: float) -> None:
    assert scored(metric, answer, expected) == pytest.approx(value)


@pytest.mark.parametrize("metric", ["exact", "numeric", "f1", "schema", "code"])
def test_a_metric_without_an_expectation_leaves_the_case_unscored(metric: str) -> None:
    assert "says nothing of what is expected" in str(scored(metric, "x", None))


@pytest.mark.parametrize("value", [None, "good", math.nan, {"score": 1}, {"value": "x"}])
def test_what_is_no_score_leaves_the_case_unscored(value: Any) -> None:
    assert "a metric returned" in str(scored(lambda case, outputs: value, "x", "x"))


def test_a_failing_metric_is_told_and_never_averaged() -> None:
    def picky(case: Any, outputs: Any) -> float:
        if case["id"] == "1":
            raise RuntimeError("no scale")
        return 0.25

    rows = [{"question": f"q{n}"} for n in range(4)]
    flow = weft.loads(QA)
    result = weft.evaluate_sync(flow, rows, picky, models={"small": answering()})
    assert result.score == 0.25
    assert result.summary().unscored == 1
    assert result.cases[0].status == "unscored"
    assert "no scale" in result.cases[0].reason


@given(st.text(max_size=30), st.text(max_size=30))
def test_f1_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    from weft.evaluation.metric import _f1, _words

    forth, back = _f1(_words(one), _words(other)), _f1(_words(other), _words(one))
    assert forth[0] == pytest.approx(back[0])
    assert 0 <= forth[0] <= 1
    assert _f1(_words(one), _words(one))[0] == 1


def judged(forth: str, back: str) -> Any:
    """The result of a judge that says these two letters; and its requests."""
    judge = FakeModel(lambda request: f'"{forth if _first(request) == "given" else back}"')
    flow = weft.loads(QA)
    models = {"small": FakeModel(["given"]), "judge_of_judge": judge}
    row = {"question": "q", "expected": "wanted"}
    result = weft.evaluate_sync(flow, [row], "judge:vllm:big", models=models)
    return result.cases[0], judge


def _first(request: Any) -> str:
    text = "".join(message.content for message in request.messages)
    return "given" if text.index("given") < text.index("wanted") else "wanted"


@pytest.mark.parametrize(
    ("forth", "back", "value"),
    [("A", "B", 1.0), ("C", "C", 1.0), ("B", "A", 0.0), ("A", "A", 0.5), ("B", "B", 0.5)],
)
def test_a_judge_sees_both_orders_and_no_names(forth: str, back: str, value: float) -> None:
    case, judge = judged(forth, back)
    assert case.scores["judge"].value == value
    assert len(judge.requests) == 2
    assert {_first(request) for request in judge.requests} == {"given", "wanted"}
    text = "".join(message.content for each in judge.requests for message in each.messages)
    assert "expected" not in text.lower()
    assert "candidate" not in text.lower()


def test_the_judges_tokens_are_not_those_of_the_workflow() -> None:
    case, _ = judged("A", "B")
    assert case.usage.requests == 1


def test_a_judge_that_says_something_else_leaves_the_case_unscored() -> None:
    case, _ = judged("D", "B")
    assert case.status == "unscored"
    assert case.reason.startswith("the judge: ModelOutputError")


def test_the_program_of_an_answer_runs_in_the_sandbox() -> None:
    tests = {
        "function": "twice",
        "tests": [{"input": [2], "expected": 4}, {"input": [3], "expected": 9}],
    }
    found = scored("code", "```python\ndef twice(n):\n    return 2 * n\n```", tests)
    if isinstance(found, str) and "cannot protect" in found:
        pytest.skip("no sandbox here")
    assert found == 0.5


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("exactly", "there is no metric 'exactly'"),
        ("judge", "has no model"),
        ("judge:big", "expected local:NAME"),
        ("numeric:much", "no tolerance"),
        ("./none.py:f", "none.py"),
        (lambda case: 1, "takes 1 arguments"),
        ({"use": "exact", "limit": 3}, "limit"),
        ({"check": "exact"}, "no name of a metric"),
    ],
)
def test_what_is_no_metric_is_refused_before_anything_runs(metric: Any, said: str) -> None:
    model = answering()
    with pytest.raises(BuildError, match=said):
        weft.evaluate_sync(weft.loads(QA), [{"question": "q1"}], metric, models={"small": model})
    assert not model.requests
