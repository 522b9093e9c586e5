"""Laws of a target, against a slow reading of the same words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.sampling import SamplingParams

logits = st.lists(st.integers(-6, 6), min_size=1, max_size=9).map(
    lambda values: np.array(values, np.float32)
)


@given(
    logits,
    st.sampled_from([0.3, 1.0, 2.0]),
    st.integers(0, 9),
    st.sampled_from([0.1, 0.6, 1.0]),
    st.sampled_from([0.0, 0.01, 0.2, 1.0]),
)
def test_it_is_what_the_words_say(
    values: np.ndarray, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    law = SamplingParams(temperature, top_k, top_p, min_p).distribution(values)
    weights = {i: float(np.exp(float(v) / temperature)) for i, v in enumerate(values)}
    likely = [i for i in weights if weights[i] >= min_p * max(weights.values())]
    kept = sorted(likely, key=lambda i: (-weights[i], i))[: top_k or len(weights)]
    total, nucleus, mass = sum(weights[i] for i in kept), [], 0.0
    for token in kept:
        nucleus.append(token)
        mass += weights[token]
        if mass >= top_p * total * (1 - 1e-12):
            break
    whole = sum(weights[i] for i in nucleus)
    wanted = [weights[i] / whole if i in nucleus else 0.0 for i in range(len(values))]
    assert law == pytest.approx(wanted, abs=1e-9)


@given(logits)
def test_greedy_takes_the_first_of_the_largest(values: np.ndarray) -> None:
    law = SamplingParams(0.0).distribution(values)
    assert law.sum() == 1.0
    assert law.argmax() == list(values).index(max(values))


def test_what_is_forbidden_stays_forbidden() -> None:
    law = SamplingParams().distribution(np.array([0.0, -np.inf, 0.0], np.float32))
    assert law.tolist() == [0.5, 0.0, 0.5]


def test_min_p_counts_after_temperature_and_keeps_its_border() -> None:
    halves = np.log(np.array([8.0, 4.0, 2.0, 1.0])).astype(np.float32)
    at_one = SamplingParams(1.0, min_p=0.3).distribution(halves)
    assert at_one == pytest.approx([2 / 3, 1 / 3, 0, 0])
    cool = SamplingParams(0.5, min_p=0.3).distribution(halves)  # squares: 64, 16, 4, 1
    assert cool.tolist() == [1.0, 0.0, 0.0, 0.0]
    equals = SamplingParams(min_p=1.0).distribution(np.array([2.0, 1.0, 2.0], np.float32))
    assert equals.tolist() == [0.5, 0.0, 0.5]


def test_min_p_0_changes_nothing() -> None:
    values = np.random.default_rng(0).normal(0, 3, 300).astype(np.float32)
    without = SamplingParams(0.8, 40, 0.9).distribution(values)
    assert SamplingParams(0.8, 40, 0.9, 0.0).distribution(values).tolist() == without.tolist()


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"min_p": -0.1}, {"min_p": 1.1}]
)
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no sampling with"):
        SamplingParams(**wrong)  # type: ignore[arg-type]
