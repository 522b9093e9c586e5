"""S* and PlanSearch with models that say anything: an answer or a typed error, in the budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.code.programmer import Machine, problem
from weft.core.errors import ModelUnavailable, ReasoningError
from weft.core.events import Event, RunFinished
from weft.core.ports import ModelRequest
from weft.reasoning.code.plansearch import PlanSearchStrategy
from weft.reasoning.code.solver import CHOICES
from weft.reasoning.code.sstar import SStarStrategy
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategy import run_thought
from weft.testing import FakeClock, FakeModel, Reply

PIECES = (
    "```python\nadd\n```",
    "```python\nsubtract\n```",
    "```\nmultiply",
    "divide",
    "```python\n```",
    "import os\nos.fork()",
    "1. one\n2. two\n3. two",
    "Verdict: A",
    "Verdict: neither Verdict: B",
    '{"inputs": [[1, 2], [3, 4], "x", null, [[]], [NaN]]}',
    '{"inputs": {"a": 1}}',
    '{"inputs": ' + "[" * 500 + "]" * 500 + "}",
    '{"tests": [{"input": [1, 2], "expected": 3}, 4, {"input": []}]}',
    json.dumps({"inputs": [[n, n] for n in range(500)]}),
    "\ud800 \x00 \u202e",
    "<think>```python\nfirst\n```",
    "",
    " ",
)
replies = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=3).map("\n".join),
    st.just(Reply(error=ModelUnavailable("gone", retryable=False))),
    st.sampled_from(PIECES).map(lambda text: Reply(text, break_after_tokens=1)),
)


@pytest.mark.parametrize("strategy", [SStarStrategy, PlanSearchStrategy])
@examples(60)
@given(
    said=st.lists(replies, min_size=1, max_size=12),
    how=st.sampled_from(CHOICES),
    width=st.integers(1, 5),
    budget=st.integers(1, 800),
    debug=st.integers(0, 2),
)
def test_whatever_a_model_says(
    strategy: type[SStarStrategy | PlanSearchStrategy],
    said: list[Reply | str],
    how: str,
    width: int,
    budget: int,
    debug: int,
) -> None:
    asked = 0

    def script(_: ModelRequest) -> Reply | str:
        nonlocal asked
        asked += 1
        return said[asked % len(said)]

    spent: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunFinished):
            spent.append(event.usage.completion_tokens)

    settings = {"select": how, "debug": debug}
    options = ThinkOptions(width=width, budget=budget, settings=settings)
    made = strategy(FakeModel(script), options, Machine())
    question = problem(([0, 0], 0))
    try:
        thought = FakeClock().run(run_thought(made, question, listeners=[listen]))
    except ReasoningError as error:
        assert "nothing was written" in str(error)  # noqa: PT017
    else:
        assert thought.answer.strip()
        assert len(thought.samples) <= width
        assert thought.counts.total_tokens <= budget
    assert spent[0] <= budget
