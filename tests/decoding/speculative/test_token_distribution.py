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
    logits, st.sampled_from([0.3, 1.0, 2.0]), st.integers(0, 9), st.sampled_from([0.1, 0.6, 1.0])
)
def test_it_is_what_the_words_say(
    values: np.ndarray, temperature: float, top_k: int, top_p: float
) -> None:
    law = SamplingParams(temperature, top_k, top_p).distribution(values)
    weights = {i: float(np.exp(float(v) / temperature)) for i, v in enumerate(values)}
    kept = sorted(weights, key=lambda i: (-weights[i], i))[: top_k or len(weights)]
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


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}])
def test_values_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no sampling with"):
        SamplingParams(**wrong)  # type: ignore[arg-type]
