"""Strategies at equal cost, and the strict judges of the tasks; no real model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.reasoning.countdown.problem import Problem
from evals.reasoning.equal_budget import Contender, Item, Result, Terms, compete
from evals.reasoning.models.evaluation import BASELINE, contenders
from evals.reasoning.models.expression import Unreadable, steps_of
from evals.reasoning.models.tasks import Task, expression_key, solves
from weft.core.ports import Capabilities, ModelClient
from weft.reasoning.question import Question
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

PROBLEM = Problem((5, 2, 4), 14)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Answer: 5 * 2 + 4", True),
        (r"so \boxed{4 + 5 \times 2}", True),
        ("Answer: 4+(5*2) = 14", True),
        ("Answer: (5+2)*(4-2)", False),
        ("Answer: 14", False),
        ("Answer: 5*2", False),
        ("Answer: 5*2+4+0", False),
        ("Answer: 5*2+4*1", False),
        ("Answer: 28/2", False),
        ("Answer: __import__('os')", False),
        ("", False),
    ],
)
def test_an_answer_is_right_when_every_number_is_used_once(text: str, right: bool) -> None:
    assert solves(PROBLEM, text) is right


@given(st.text(alphabet="0123456789+-*/()= .,ab", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        steps = steps_of(text)
    except Unreadable:
        return
    assert all(step.count("=") == 1 for step in steps)


@pytest.mark.parametrize("text", ["(" * 150, "9" * 30, "1-2", "1/0", "5/2", "1+", "(1", "1)", ""])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        steps_of(text)


def test_expressions_that_are_written_differently_are_one_vote() -> None:
    assert expression_key("Answer: 5*2 + 4") == expression_key("Answer: (5 * 2) + 4 = 14")
    assert expression_key("Answer: none") is None


def results(contender: Contender, model: ModelClient, options: Any) -> list[Result]:
    items = [Item("one", Question("What?"), lambda _, key: key == "7")]

    async def main() -> list[Result]:
        return [result async for result in compete(model, contender, items, options)]

    return asyncio.run(main())


TASK = Task("any", (), lambda text, _: text[-1:] or None, lambda _, text: text.endswith("7"))
TERMS = Terms(sample_tokens=20, width=4)


@pytest.mark.parametrize("contender", contenders(TASK)[:6], ids=lambda c: c.system)
def test_nobody_exceeds_what_everybody_gets(contender: Contender) -> None:
    model = FakeModel([Reply("so " * 14 + "Answer: 7")], capabilities=Capabilities())
    (found,) = results(contender, model, TERMS.equal_tokens(contender))
    assert found.thought is not None
    assert found.thought.counts.total_tokens <= 80
    assert found.any_right


COMPETING = [each for each in contenders(TASK) if each.system != "confidence"]
"""Without the one that needs log probabilities, which no fake tells."""
TOGETHER = [
    Contender("hogwild", "hogwild"),
    Contender("group_think", "group-think", {"thinkers": 4}),
]


@pytest.mark.parametrize("contender", [*COMPETING, *TOGETHER], ids=lambda c: c.system)
def test_at_equal_latency_no_critical_path_is_longer(contender: Contender) -> None:
    model = TokenModel(lambda *_: TokenReply("so " * 99))
    (found,) = results(contender, model, TERMS.equal_latency(contender))
    assert found.thought is not None, found.why
    counts = found.thought.counts
    assert 0 < counts.critical_path_tokens <= 20
    assert found.thought.tree is not None
    assert found.thought.tree.critical_path_tokens == counts.critical_path_tokens


def test_at_equal_latency_what_runs_side_by_side_is_not_cut() -> None:
    contender = Contender("majority", "sample", {"cancel_decided": False})
    model = FakeModel([Reply("so " * 99)], capabilities=Capabilities())
    (found,) = results(contender, model, TERMS.equal_latency(contender))
    assert found.thought is not None
    assert found.thought.counts.total_tokens == 4 * 20
    assert found.thought.counts.critical_path_tokens == 20


def test_who_asks_again_after_its_samples_has_shorter_ones() -> None:
    graded = Contender("best_of_n", "best-of")
    model = FakeModel([Reply("so " * 99)], capabilities=Capabilities())
    (found,) = results(graded, model, TERMS.equal_latency(graded))
    assert found.thought is not None
    assert [sample.tokens for sample in found.thought.samples] == [10] * 4
    scored = Contender("best_of_n", "best-of", {"scorer": lambda _, __: 1.0})
    (found,) = results(scored, model, TERMS.equal_latency(scored))
    assert found.thought is not None
    assert [sample.tokens for sample in found.thought.samples] == [20] * 4


def test_the_baseline_is_always_there() -> None:
    assert BASELINE in [c.system for c in contenders(Task("any", (), lambda _, __: None))]


def test_a_contender_that_fails_is_wrong_and_says_why() -> None:
    contender = Contender("deepconf", "sample", {"sampler": "deepconf"})
    model = FakeModel(["Answer: 7"], capabilities=Capabilities())
    (found,) = results(contender, model, Terms(20, 4).equal_tokens(contender))
    assert not found.right
    assert "log probabilities" in found.why
