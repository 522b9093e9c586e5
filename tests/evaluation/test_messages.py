"""Metrics of the messages between nodes, in an evaluation and alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

import weft
from weft.errors import InputError, TypeMismatch
from weft.evaluation.messages import message_tokens, readability
from weft.testing import FakeModel

TEXT = """\
name: report
inputs: {x: string}
models: {small: "local:tiny"}
nodes:
  facts: {model: small, prompt: "Facts of {{ x }}"}
  report: {model: small, prompt: "Write {{ facts }}"}
outputs: {report: "{{ report }}"}
"""


def test_an_evaluation_counts_the_tokens_between_nodes() -> None:
    flow = weft.loads(TEXT)
    found = weft.evaluate_sync(
        flow,
        data=[{"id": "a", "x": "rivers"}],
        metric=message_tokens(["report"], 100),
        models={"small": FakeModel(lambda request: "one two three")},
    )
    (case,) = found.cases
    (score,) = case.scores.values()
    written = score.parts["tokens"]
    assert 0 < written < case.usage.completion_tokens
    assert score.value == pytest.approx(1 - written / 100)


def trace_of(**tokens: int) -> dict[str, Any]:
    return {
        "nodes": {
            name: {"value": name * 3, "completion_tokens": count} for name, count in tokens.items()
        }
    }


def test_what_exceeds_the_budget_scores_zero_and_the_answer_does_not_count() -> None:
    metric = message_tokens(["report"], 10)
    assert metric({}, {}, trace_of(facts=50, report=5)).value == 0
    assert metric({}, {}, trace_of(report=50)).value == 1
    with pytest.raises(InputError, match="at least 1"):
        message_tokens([], 0)


def test_readability_is_the_mean_probability_of_the_messages() -> None:
    metric = readability(["report"], lambda text: 0.5 if text == "aaa" else 1.5)
    score = metric({}, {}, trace_of(a=1, b=1, c=0, report=9))
    assert score.value == pytest.approx((math.exp(-0.5) + math.exp(-1.5)) / 2)
    assert metric({}, {}, trace_of(report=9)).value == 1
    with pytest.raises(TypeMismatch, match="loss"):
        readability([], lambda text: math.nan)({}, {}, trace_of(a=1))
