"""Every strategy against a real vLLM server: token ids, tags by prompt, budgets, cancellation."""

from __future__ import annotations

import pytest

import weft
from tests.live_vllm import NAME, LiveVllm
from tests.reasoning.strategy_cases import occasion
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES

BUDGET = 160
USUAL = ("sample", "threadweaver", "map-reduce")
"""One of each way to ask: samples, forks of token ids, fresh prompts. The others are slow tests."""
CASES = [pytest.param(name, marks=() if name in USUAL else pytest.mark.slow) for name in STRATEGIES]


@pytest.mark.vllm
@pytest.mark.parametrize("strategy", CASES)
def test_a_small_model_comes_to_an_end_within_its_budget(
    strategy: str, live_vllm: LiveVllm
) -> None:
    """What it says may be nonsense; that there is an end, and what it cost, is not."""
    asked = occasion(strategy)
    options = ThinkOptions(
        width=2,
        budget=BUDGET,
        depth=1,
        rounds=2,
        max_tokens=32,
        answer_tokens=32,
        settings=asked.settings,
    )
    thought = weft.think_sync(
        asked.question,
        strategy=strategy,
        model={"use": "openai", "model": NAME, "base_url": live_vllm.base_url},
        documents=asked.documents,
        options=options,
    )
    assert 0 < thought.counts.total_tokens <= BUDGET
    assert thought.counts.prompt_tokens > 0
    assert thought.tree is not None
    assert thought.tree.state.ended
