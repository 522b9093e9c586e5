from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.serving.local.sampler import Sampler

LOGITS = st.lists(
    st.one_of(st.floats(-8, 8, width=32), st.just(-np.inf)), min_size=2, max_size=30
).filter(lambda values: max(values) > -np.inf)


def allowed(logits: NDArray[np.float64], temperature: float, top_p: float, top_k: int) -> set[int]:
    """The tokens that may be drawn, from the definitions: sort, cut at k, cut at mass p."""
    weights = np.exp((logits - logits.max()) / temperature)
    order = np.argsort(-weights, kind="stable")[: top_k or None]
    mass = weights[order] / weights[order].sum()
    enough = int(np.searchsorted(mass.cumsum(), top_p)) + 1
    return {int(i) for i in order[:enough] if weights[i] > 0}


@given(values=LOGITS, top_k=st.integers(0, 6), seed=st.integers(0, 2**63))
def test_only_what_top_k_keeps_is_drawn(values: list[float], top_k: int, seed: int) -> None:
    logits = np.array(values, dtype=np.float32)
    drawn = Sampler(1.0, 1.0, top_k, seed).choose(logits)
    assert drawn in allowed(logits.astype(np.float64), 1.0, 1.0, top_k)


@pytest.mark.parametrize("size", [40, 3000])
@pytest.mark.parametrize(
    ("temperature", "top_p", "top_k"),
    [(1.0, 1.0, 0), (0.5, 1.0, 0), (1.0, 0.6, 0), (2.0, 0.95, 0), (1.0, 0.7, 9), (1.3, 1.0, 700)],
)
def test_draws_follow_the_distribution(
    size: int, temperature: float, top_p: float, top_k: int
) -> None:
    logits = np.random.default_rng(1).normal(0, 1.5, size).astype(np.float32)
    kept = sorted(allowed(logits.astype(np.float64), temperature, top_p, top_k))
    weights = np.exp(logits[kept].astype(np.float64) / temperature)
    sampler = Sampler(temperature, top_p, top_k, seed=3)
    draws = np.array([sampler.choose(logits) for _ in range(4000)])
    assert set(draws) <= set(kept)
    heavy = np.argsort(-weights)[:8]
    for index in heavy:
        share = weights[index] / weights.sum()
        deviation = np.sqrt(share * (1 - share) / len(draws))
        assert abs(np.mean(draws == kept[index]) - share) < 4.5 * deviation + 1e-9


def test_a_flat_distribution_has_a_nucleus_wider_than_the_fast_path() -> None:
    logits = np.zeros(5000, dtype=np.float32)
    draws = {Sampler(1.0, 0.9, 0, seed).choose(logits) for seed in range(400)}
    assert max(draws) > 3000
    assert max(draws) < 4500


@given(values=LOGITS, seed=st.integers(-5, 2**70))
def test_equal_seeds_draw_equally(values: list[float], seed: int) -> None:
    logits = np.array(values, dtype=np.float32)
    first, second = (Sampler(0.9, 0.9, 0, seed) for _ in range(2))
    assert [first.choose(logits) for _ in range(9)] == [second.choose(logits) for _ in range(9)]


def test_no_seed_is_different_each_time() -> None:
    logits = np.zeros(2**16, dtype=np.float32)
    assert len({Sampler(1.0, 1.0, 0, None).choose(logits) for _ in range(8)}) > 1


@pytest.mark.parametrize("temperature", [0.0, 1e-9, 1e-40])
def test_temperature_zero_is_greedy(temperature: float) -> None:
    logits = np.array([0.0, 3.0, -np.inf, 3.0], dtype=np.float32)
    assert Sampler(temperature, 0.5, 0, None).choose(logits) == 1


@pytest.mark.parametrize("temperature", [1e-4, 0.1, 5.0])
def test_forbidden_tokens_are_never_drawn(temperature: float) -> None:
    logits = np.full(100, -np.inf, dtype=np.float32)
    logits[[7, 60]] = [-50.0, -49.0]
    sampler = Sampler(temperature, 0.99, 0, seed=0)
    assert {sampler.choose(logits) for _ in range(50)} <= {7, 60}
