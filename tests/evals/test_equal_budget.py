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
from weft.core.fakes import FakeModel, Reply
from weft.core.ports import Capabilities
from weft.reasoning.question import Question

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


def results(contender: Contender, model: FakeModel, options: Any) -> list[Result]:
    items = [Item("one", Question("What?"), lambda _, key: key == "7")]

    async def main() -> list[Result]:
        return [result async for result in compete(model, contender, items, options)]

    return asyncio.run(main())


def test_nobody_exceeds_what_everybody_gets() -> None:
    terms = Terms(sample_tokens=20, width=4)
    task = Task("any", (), lambda text, _: text[-1:] or None, lambda _, text: text.endswith("7"))
    for contender in contenders(task)[:6]:
        for options, most in (
            (terms.equal_tokens(contender), 80),
            (terms.equal_latency(contender), 80 if contender.parallel else 20),
        ):
            model = FakeModel([Reply("so " * 14 + "Answer: 7")], capabilities=Capabilities())
            (found,) = results(contender, model, options)
            assert found.thought is not None, contender
            assert found.thought.counts.total_tokens <= most
            assert found.any_right


def test_the_baseline_is_always_there() -> None:
    assert BASELINE in [c.system for c in contenders(Task("any", (), lambda _, __: None))]


def test_a_contender_that_fails_is_wrong_and_says_why() -> None:
    contender = Contender("deepconf", "sample", {"sampler": "deepconf"})
    model = FakeModel(["Answer: 7"], capabilities=Capabilities())
    (found,) = results(contender, model, Terms(20, 4).equal_tokens(contender))
    assert not found.right
    assert "log probabilities" in found.why
