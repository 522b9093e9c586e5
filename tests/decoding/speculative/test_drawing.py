"""Drawing from a shaped law with chance that depends on the position only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.decoding.sampling import CounterRng, SamplingParams

LOGITS = st.lists(
    st.one_of(st.floats(-8, 8, width=32), st.just(-np.inf)), min_size=2, max_size=30
).filter(lambda values: max(values) > -np.inf)


def drawn(
    shaping: SamplingParams, seed: int, logits: NDArray[np.float32], position: int = 0
) -> int:
    return CounterRng(seed).token(shaping.distribution(logits), position)


def allowed(logits: NDArray[np.float64], shaping: SamplingParams) -> set[int]:
    """The tokens that may be drawn, from the definitions: sort, cut at k, cut at mass p."""
    weights = np.exp((logits - logits.max()) / shaping.temperature)
    order = np.argsort(-weights, kind="stable")[: shaping.top_k or None]
    mass = weights[order] / weights[order].sum()
    enough = int(np.searchsorted(mass.cumsum(), shaping.top_p)) + 1
    return {int(i) for i in order[:enough] if weights[i] > 0}


@given(values=LOGITS, top_k=st.integers(0, 6), seed=st.integers(0, 2**63))
def test_only_what_top_k_keeps_is_drawn(values: list[float], top_k: int, seed: int) -> None:
    logits = np.array(values, dtype=np.float32)
    shaping = SamplingParams(1.0, top_k)
    assert drawn(shaping, seed, logits) in allowed(logits.astype(np.float64), shaping)


@pytest.mark.parametrize("size", [40, 3000])
@pytest.mark.parametrize(
    "shaping",
    [
        SamplingParams(1.0),
        SamplingParams(0.5),
        SamplingParams(1.0, top_p=0.6),
        SamplingParams(2.0, top_p=0.95),
        SamplingParams(1.0, 9, 0.7),
        SamplingParams(1.3, 700),
    ],
)
def test_draws_follow_the_distribution(size: int, shaping: SamplingParams) -> None:
    logits = np.random.default_rng(1).normal(0, 1.5, size).astype(np.float32)
    kept = sorted(allowed(logits.astype(np.float64), shaping))
    weights = np.exp(logits[kept].astype(np.float64) / shaping.temperature)
    law, chance = shaping.distribution(logits), CounterRng(3)
    draws = np.array([chance.token(law, position) for position in range(4000)])
    assert set(draws) <= set(kept)
    for index in np.argsort(-weights)[:8]:
        share = weights[index] / weights.sum()
        deviation = np.sqrt(share * (1 - share) / len(draws))
        assert abs(np.mean(draws == kept[index]) - share) < 4.5 * deviation + 1e-9


def test_a_flat_distribution_has_a_nucleus_wider_than_the_fast_path() -> None:
    logits = np.zeros(5000, dtype=np.float32)
    draws = {drawn(SamplingParams(1.0, top_p=0.9), seed, logits) for seed in range(400)}
    assert max(draws) > 3000
    assert max(draws) < 4500


@given(values=LOGITS, seed=st.integers(-5, 2**70))
def test_equal_seeds_draw_equally_and_in_any_order(values: list[float], seed: int) -> None:
    law = SamplingParams(0.9, top_p=0.9).distribution(np.array(values, dtype=np.float32))
    first = [CounterRng(seed).token(law, position) for position in range(9)]
    second = [CounterRng(seed).token(law, position) for position in reversed(range(9))]
    assert first == second[::-1]


@pytest.mark.parametrize("temperature", [1e-4, 0.1, 5.0])
def test_forbidden_tokens_are_never_drawn(temperature: float) -> None:
    logits = np.full(100, -np.inf, dtype=np.float32)
    logits[[7, 60]] = [-50.0, -49.0]
    assert {drawn(SamplingParams(temperature), 0, logits, n) for n in range(50)} <= {7, 60}
