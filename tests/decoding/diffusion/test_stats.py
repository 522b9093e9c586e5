"""The statistics of predictions, against plain sums; and what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import Stats, compute_stats, sample_tokens
from weft.decoding.sampling import CounterRng, SamplingParams

GREEDY = SamplingParams(0.0)
ENDS = frozenset({4})
rows = st.lists(st.lists(st.floats(-8, 8), min_size=5, max_size=5), min_size=1, max_size=4)


def canvas(slots: int) -> Canvas:
    made = Canvas([1], slots, 0)
    made.window = range(1, made.length)
    return made


def looked(logits: NDArray[np.float32], **more: object) -> Stats:
    slots = np.arange(1, 1 + len(logits))
    return compute_stats(canvas(len(logits)), slots, logits, ENDS, **more)  # type: ignore[arg-type]


@given(rows)
def test_they_are_what_sums_say(drawn: list[list[float]]) -> None:
    stats = looked(np.array(drawn, dtype=np.float32))
    for row, logits in enumerate(drawn):
        total = sum(math.exp(one) for one in logits)
        p = [math.exp(one) / total for one in logits]
        best = sorted(range(5), key=lambda i: (-np.float32(logits[i]), i))[:2]
        assert stats.top_ids[row].tolist() == best
        assert stats.confidence[row] == pytest.approx(max(p), rel=1e-4)
        assert stats.margin[row] == pytest.approx(p[best[0]] - p[best[1]], abs=1e-5)
        assert stats.entropy[row] == pytest.approx(-sum(x * math.log(x) for x in p), abs=1e-4)
        assert stats.p_end[row] == pytest.approx(p[4], rel=1e-4)


def test_what_is_forbidden_has_no_probability() -> None:
    stats = looked(np.array([[-np.inf, 0, -np.inf, -np.inf, -np.inf]], dtype=np.float32))

    assert stats.top_ids[0, 0] == 1
    assert stats.confidence[0] == 1
    assert stats.entropy[0] == 0


def test_change_is_measured_against_the_pass_before() -> None:
    before = looked(np.log(np.array([[0.5, 0.25, 0.125, 0.0625, 0.0625]], np.float32)), keep=True)
    now = np.log(np.array([[0.25, 0.5, 0.125, 0.0625, 0.0625]] * 2, np.float32))

    stats = looked(now, before=before)

    assert stats.kl[0] == pytest.approx(0.25 * math.log(0.5) + 0.5 * math.log(2), abs=1e-6)
    assert math.isnan(stats.kl[1])
    assert stats.logp is None


def test_only_undecided_slots_of_the_window_are_open() -> None:
    one = canvas(4)
    one.window = range(1, 4)
    one.commit([2], [3])

    stats = compute_stats(one, np.arange(1, 5), np.zeros((4, 5), np.float32), ENDS)

    assert stats.open.tolist() == [True, False, True, False]
    assert stats.rows(np.array([2, 4])).tolist() == [1, 3]


def test_greedy_takes_the_lowest_of_equals() -> None:
    one = canvas(1)
    drawn = sample_tokens(one, np.array([1]), np.zeros((1, 5), np.float32), GREEDY, CounterRng(0))

    assert drawn.ids.tolist() == [0]
    assert drawn.p[0] == pytest.approx(0.2)


def test_a_slot_keeps_its_number_until_it_is_opened_again() -> None:
    one = canvas(2)
    slots, logits = np.array([1, 2]), np.zeros((2, 5), np.float32)

    def draw(seed: int, *, fresh: bool = False) -> list[int]:
        chance = CounterRng(seed)
        drawn = sample_tokens(one, slots, logits, SamplingParams(1.0), chance, fresh=fresh)
        return [int(token) for token in drawn.ids]

    first = [draw(seed) for seed in range(40)]
    one.step = 1
    assert [draw(seed) for seed in range(40)] == first
    assert [draw(seed, fresh=True) for seed in range(40)] != first
    one.commit([1], [3])
    one.remask([1], 0)
    again = [draw(seed) for seed in range(40)]
    assert [pair[1] for pair in again] == [pair[1] for pair in first]
    assert [pair[0] for pair in again] != [pair[0] for pair in first]


def test_draws_follow_temperature_and_their_probability_does_not() -> None:
    one = canvas(1)
    logits = np.log(np.array([[0.6, 0.1, 0.1, 0.1, 0.1]], np.float32))
    cold = [
        sample_tokens(one, np.array([1]), logits, SamplingParams(0.25), CounterRng(seed))
        for seed in range(300)
    ]
    share = sum(int(one.ids[0] == 0) for one in cold) / 300
    expected = 0.6**4 / (0.6**4 + 4 * 0.1**4)

    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 300)
    assert {round(float(one.p[0]), 3) for one in cold if one.ids[0] == 0} == {0.6}
