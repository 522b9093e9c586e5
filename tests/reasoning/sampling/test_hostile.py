"""Sampling over models that fail, break off, say nothing or never end: a thought, or a reason.

`told` checks the rest: budgets, counts, nothing left behind, events in order.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasoning.scripted_strategy import Told, told
from weft.core.budget import Budget
from weft.core.errors import ModelOverloaded, ModelRequestError
from weft.core.ports import Capabilities
from weft.engine import BudgetLimit, RunOptions
from weft.reasoning.thought import Thought
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

TEXTS = st.sampled_from(
    ["Answer: 1", "Answer: 2", "", " ", "\\boxed{", "so " * 30 + "Answer: 1", "word " * 500, "\x00"]
)
ERRORS = st.sampled_from([None, None, None, ModelRequestError("no"), ModelOverloaded("busy")])
REPLIES = st.lists(
    st.builds(
        Reply,
        TEXTS,
        first_token_s=st.sampled_from([0.0, 1.0, 7.5]),
        per_token_s=st.sampled_from([0.0, 0.5, 3.0]),
        break_after_tokens=st.sampled_from([None, None, 0, 2]),
        error=ERRORS,
    ),
    min_size=1,
    max_size=6,
)
SETTINGS = st.sampled_from(
    [
        {},
        {"cancel_decided": False},
        {"sampler": "asc", "wave": 1},
        {"sampler": "esc", "wave": 2},
        {"sampler": "short", "first": 2},
        {"sampler": "saturating", "pilot": 2},
        {"sampler": "probe", "every": 5, "warmup": 1, "patience": 2, "stable": 2},
        {"selector": "best"},
        {"selector": "pairwise"},
        {"selector": "synthesis", "answer": "text"},
        {"samples": 7},
    ]
)


def thought_or_reason(done: Told) -> None:
    outcome = done.result.outcomes
    value = next(iter(outcome.values())).value
    assert isinstance(value, Thought) or done.result.reasons
    assert "Group" not in str(done.result.reasons), "an error must say what happened"


@pytest.mark.parametrize("strategy", ["sample", "backtrack", "direct"])
@given(
    replies=REPLIES,
    settings=SETTINGS,
    width=st.integers(1, 5),
    budget=st.sampled_from([None, 1, 13, 60, 400]),
    slots=st.sampled_from([None, 1, 2]),
)
def test_whatever_a_model_does_there_is_an_end(
    strategy: str,
    replies: list[Reply],
    settings: dict[str, Any],
    width: int,
    budget: int | None,
    slots: int | None,
) -> None:
    model = FakeModel(replies, capabilities=Capabilities(continuation=True))
    thought_or_reason(
        told(
            strategy,
            model,
            settings=settings if strategy == "sample" else None,
            run=RunOptions(max_concurrency=slots),
            width=width,
            budget=budget,
            max_tokens=40,
            answer_tokens=10,
            rounds=4,
        )
    )
    assert model.running == 0


@given(
    st.lists(
        st.builds(
            TokenReply,
            st.sampled_from(["Answer: 1", "7}", "thinking " * 20, "", "<think>so"]),
            break_after_tokens=st.sampled_from([None, None, 3]),
            endless=st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 4),
    st.sampled_from([None, 30, 200]),
    st.sampled_from([64, 300, None]),
)
def test_probes_of_a_hostile_model_over_token_ids(
    replies: list[TokenReply], width: int, budget: int | None, window: int | None
) -> None:
    left = iter(replies * 100)
    model = TokenModel(lambda _, __: next(left), per_token_s=0.5, context_tokens=window)
    settings = {"sampler": "probe", "every": 10, "warmup": 1, "patience": 2, "stable": 3}
    thought_or_reason(
        told("sample", model, settings=settings, width=width, budget=budget, max_tokens=90)
    )
    assert model.running == 0


@pytest.mark.parametrize(
    "run",
    [
        RunOptions(deadline_s=15.0),
        RunOptions(limit=BudgetLimit(Budget(tokens=50))),
        RunOptions(limit=BudgetLimit(Budget(tokens=50), "degrade")),
    ],
)
def test_a_run_that_ends_takes_its_samples_along(run: RunOptions) -> None:
    model = FakeModel([Reply("so " * 300, per_token_s=1.0)], capabilities=Capabilities())
    thought_or_reason(told("sample", model, width=3, max_tokens=400, run=run))
    assert model.running == 0
