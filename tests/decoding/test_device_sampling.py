"""Tokens that a device chooses are those of `SamplingParams` and `CounterRng`."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.sampling import CounterRng, SamplingParams

if find_spec("torch") is None:
    pytest.skip("needs torch", allow_module_level=True)

import torch

from weft.decoding import device_sampling
from weft.decoding.device_sampling import TokenDraws, choose_tokens, samples_on

PARAMS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 2, 7, 10_000]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.05, 1.0]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(PARAMS, st.integers(1, 4), st.integers(0, 2**32)), min_size=1, max_size=5),
    st.integers(2, 700),
    st.integers(0, 2**32),
)
def test_every_row_is_drawn_as_on_the_host(
    asked: list[tuple[SamplingParams, int, int]], vocabulary: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    expected, draws, rows = [], [], []
    for params, count, key in asked:
        counter = CounterRng(key)
        logits = (rng.normal(size=(count, vocabulary)) * 3).astype(np.float32)
        laws = [params.distribution(row) for row in logits]
        expected.append([counter.token(law, position) for position, law in enumerate(laws)])
        draws.append(TokenDraws(params, tuple(counter.number(at) for at in range(count))))
        rows.append(logits)
    assert choose_tokens(torch.from_numpy(np.concatenate(rows)), draws) == expected


@pytest.mark.parametrize("params", [SamplingParams(0.0), SamplingParams(1.0, top_k=2)])
def test_of_equals_the_lower_ids_stay(params: SamplingParams) -> None:
    scores = torch.tensor([[1.0, 5.0, 5.0, 5.0, 0.0]])
    (drawn,) = choose_tokens(scores, [TokenDraws(params, (0.0,))])
    assert drawn == [1]
    (drawn,) = choose_tokens(scores, [TokenDraws(params, (0.999,))])
    assert drawn == [1 if params.greedy else 2]


def test_tokens_that_are_ruled_out_are_never_drawn() -> None:
    scores = torch.full((1, 6), float("-inf"))
    scores[0, 4] = 1.0
    for number in (0.0, 0.5, 1.0 - 2.0**-53):
        assert choose_tokens(scores, [TokenDraws(SamplingParams(1.0), (number,))]) == [[4]]


def test_many_rows_are_drawn_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(9, 50, generator=torch.Generator().manual_seed(0))
    draws = [TokenDraws(SamplingParams(1.0, top_p=0.9), tuple(n / 9 for n in range(9)))]
    whole = choose_tokens(scores, draws)
    monkeypatch.setattr(device_sampling, "_WIDEST", 100)
    assert choose_tokens(scores, draws) == whole


def test_the_host_decides_where_there_are_no_doubles() -> None:
    assert samples_on(torch.device("cuda"))
    assert not samples_on(torch.device("cpu"))
    assert not samples_on(torch.device("mps"))
