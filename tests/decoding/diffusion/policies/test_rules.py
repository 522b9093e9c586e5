"""Each rule by hand: what passes, what stands at the border, and ties, which go to the left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.decoding.diffusion.policies.pass_statistics import (
    END,
    TRAITS,
    canvas,
    chosen,
    places,
    seen,
)
from weft.decoding.diffusion.policies.confidence import (
    EntropyBoundPolicy,
    EntropyThresholdPolicy,
    FactorPolicy,
    ThresholdPolicy,
)
from weft.decoding.diffusion.policies.fixed_pace import (
    AncestralPolicy,
    DilatedPolicy,
    EvenSteps,
    EveryStep,
    FadingPace,
    FixedPacePolicy,
)
from weft.decoding.diffusion.policies.ranking import Score


def test_fixed_takes_the_best_by_its_score() -> None:
    text = canvas(4)
    look = seen(
        text,
        [0.5, 0.6, 0.7, 0.6],
        second=[0.1, 0.4, 0.3, 0.1],
        entropy=[1.0, 0.2, 0.9, 0.8],
        drawn=[0.5, 0.01, 0.02, 0.6],
    )
    expected: dict[Score, list[int]] = {
        "confidence": [1, 2],  # 1 and 3 tie, the leftmost is taken
        "drawn": [0, 3],
        "margin": [0, 3],
        "entropy": [1, 3],
        "leftmost": [0, 1],
    }
    for score, slots in expected.items():
        assert chosen(FixedPacePolicy(EveryStep(2), score), text, look) == slots


def test_what_float32_cannot_tell_apart_is_a_tie() -> None:
    text = canvas(3)
    look = seen(text, [0.3333333, 0.33333334, 0.3334])

    assert chosen(FixedPacePolicy(EveryStep(1)), text, look) == [2]
    assert chosen(FixedPacePolicy(EveryStep(2)), text, look) == [0, 2]


def test_decided_slots_are_never_taken() -> None:
    text = canvas(4)
    text.commit([text.first + 1, text.first + 2], [5, 5])
    look = seen(text, [0.1, 0.9, 1.0, 0.2])

    assert chosen(FixedPacePolicy(EveryStep(1)), text, look) == [3]
    assert chosen(FixedPacePolicy(EveryStep(9), "random"), text, look) == [0, 3]
    assert chosen(ThresholdPolicy(0.8), text, look) == [3]
    assert chosen(FactorPolicy(1.0), text, look) == [3]
    assert chosen(EntropyBoundPolicy(9.0), text, look) == [0, 3]
    assert chosen(EntropyThresholdPolicy(0.5), text, look) == [3]
    assert chosen(AncestralPolicy(1), text, look) == [0, 3]


def test_terminators_come_last_when_asked() -> None:
    text = canvas(3)
    look = seen(text, [0.9, 0.2, 0.8], ids=[END, 1, END])

    assert chosen(FixedPacePolicy(EveryStep(2)), text, look) == [0, 2]
    assert chosen(FixedPacePolicy(EveryStep(2), ends_last=True), text, look) == [0, 1]
    assert chosen(FixedPacePolicy(EveryStep(1), "leftmost", ends_last=True), text, look) == [1]
    assert chosen(FixedPacePolicy(EveryStep(1), "random", ends_last=True), text, look) == [1]


def test_all_that_reach_a_threshold_pass_and_its_border_belongs_to_it() -> None:
    text = canvas(4)
    look = seen(text, [0.5, 0.499, 0.75, 0.49999996])

    assert chosen(ThresholdPolicy(0.5), text, look) == [0, 2, 3]  # the last is a half in float32
    assert chosen(ThresholdPolicy(0.75), text, look) == [2]
    assert chosen(ThresholdPolicy(0.8), text, look) == [2]
    assert chosen(ThresholdPolicy(1.0), text, look) == [2]
    assert chosen(ThresholdPolicy(0.0), text, look) == [0, 1, 2, 3]


def test_a_threshold_looks_at_what_was_drawn_or_at_what_is_likeliest() -> None:
    text = canvas(3)
    look = seen(text, [0.9, 0.9, 0.6], drawn=[0.9, 0.1, 0.6])

    assert chosen(ThresholdPolicy(0.8, "drawn"), text, look) == [0]
    assert chosen(ThresholdPolicy(0.8, "confidence"), text, look) == [0, 1]
    assert chosen(FactorPolicy(1.0, "drawn"), text, look) == [0]
    assert chosen(FactorPolicy(1.0, "confidence"), text, look) == [0, 1]


def test_where_none_reaches_a_threshold_the_pace_counts() -> None:
    text = canvas(4)
    low, one = seen(text, [0.1, 0.4, 0.2, 0.3]), seen(text, [0.1, 0.9, 0.2, 0.3])

    assert chosen(ThresholdPolicy(0.5, pace=EveryStep(2)), text, low) == [1, 3]
    assert chosen(ThresholdPolicy(0.5, pace=EveryStep(2)), text, one) == [1]
    assert chosen(ThresholdPolicy(0.5, pace=EveryStep(2), filled=True), text, one) == [1, 3]


def test_dimple_writes_the_rest_in_its_last_step() -> None:
    text = canvas(6)
    at_work = ThresholdPolicy(0.95, pace=FadingPace(3, least=1)).begin(text, TRAITS)
    done = []
    for _ in range(3):
        action = at_work.propose(*seen(text, [0.5] * 6), text)
        action.perform(text, 9)
        text.step_in_block += 1
        done.append(places(action, text))

    # shares of Dream's pace: 1 - 0.667/1 of 6, 1 - 0.334/0.667 of 5
    assert done == [[0], [1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("confidence", "factor", "count"),
    [
        ([0.6] * 4, 1.0, 1),  # 2 * 0.4 < 1, 3 * 0.4 is not
        ([0.7] * 4, 1.0, 2),  # 3 * 0.3 < 1
        ([5 / 6] * 6, 1.0, 4),  # 6 * 1/6 stands at the border: not below
        ([5 / 6] * 6, 1.001, 5),
        ([0.5] * 4, 1.0, 1),
        ([1.0] * 4, 1.0, 4),
        ([1.0, 1.0, 0.8, 0.5], 1.0, 3),  # 4 * 0.2 < 1, 5 * 0.5 is not
        ([0.7] * 4, 2.0, 4),
        ([0.1] * 4, 0.01, 1),
    ],
)
def test_factor_takes_as_many_as_are_sure_together(
    confidence: list[float], factor: float, count: int
) -> None:
    text = canvas(len(confidence))

    assert len(chosen(FactorPolicy(factor), text, seen(text, confidence))) == count
    rounded = [float(np.float32(p)) for p in confidence]
    assert len(chosen(FactorPolicy(factor), text, seen(text, rounded))) == count


def test_entropy_threshold_takes_what_is_below_or_the_least() -> None:
    text = canvas(4)
    look = seen(text, [0.5] * 4, entropy=[0.5, 0.3, 0.6, 0.3])

    assert chosen(EntropyThresholdPolicy(0.5), text, look) == [0, 1, 3]
    assert chosen(EntropyThresholdPolicy(0.1), text, look) == [1]
    assert chosen(EntropyThresholdPolicy(0.0), text, look) == [1]


def test_entropy_bound_spends_its_budget_on_all_but_the_largest() -> None:
    text = canvas(5)
    look = seen(text, [0.5] * 5, entropy=[0.4, 0.1, 0.2, 0.0, 5.0])

    assert chosen(EntropyBoundPolicy(0.0), text, look) == [1, 3]  # 0.0 and one more
    assert chosen(EntropyBoundPolicy(0.1), text, look) == [1, 2, 3]
    assert chosen(EntropyBoundPolicy(0.3), text, look) == [0, 1, 2, 3]
    assert chosen(EntropyBoundPolicy(0.69), text, look) == [0, 1, 2, 3]
    assert chosen(EntropyBoundPolicy(0.7), text, look) == [0, 1, 2, 3, 4]


def test_dilated_halves_the_gap() -> None:
    text = canvas(8)
    at_work = DilatedPolicy().begin(text, TRAITS)
    done = []
    while text.undecided.any():
        action = at_work.propose(*seen(text, [0.5] * 8), text)
        action.perform(text, 9)
        done.append(places(action, text))

    assert done == [[0, 4], [2, 6], [1, 3, 5, 7]]
    text = canvas(9)
    assert chosen(DilatedPolicy(3), text, seen(text, [0.5] * 9)) == [0, 3, 6]
    text = canvas(1)
    assert chosen(DilatedPolicy(), text, seen(text, [0.5])) == [0]


def test_random_orders_are_the_rows_own_and_even() -> None:
    text = canvas(4)
    first = [
        chosen(
            FixedPacePolicy(EveryStep(1), "random"), text, seen(text, [0.9, 0.1, 0.5, 0.2], seed=s)
        )[0]
        for s in range(400)
    ]

    assert first == [
        chosen(FixedPacePolicy(EveryStep(1), "random"), text, seen(text, [0.1] * 4, seed=s))[0]
        for s in range(400)
    ]
    assert min(np.bincount(first, minlength=4)) > 70


def test_a_spread_draws_slots_by_their_score() -> None:
    text = canvas(3)
    policy = FixedPacePolicy(EveryStep(1), "confidence", spread=0.1)
    first = [chosen(policy, text, seen(text, [0.5, 0.4, 0.0], seed=s))[0] for s in range(400)]

    counts = np.bincount(first, minlength=3)  # weights 1 : 1/e : e^-5
    assert counts[0] / counts[1] == pytest.approx(np.e, rel=0.3)
    assert counts[2] < 15
    sharp = FixedPacePolicy(EveryStep(3), "confidence", spread=1e-6)
    assert chosen(sharp, text, seen(text, [0.5, 0.4, 0.0])) == [0, 1, 2]


def test_ancestral_writes_each_slot_with_the_share_of_time_that_passes() -> None:
    text = canvas(100)
    look = seen(text, [0.5] * 100, seed=3)
    counts = []
    at_work = AncestralPolicy(4).begin(text, TRAITS)
    for _ in range(4):
        action = at_work.propose(*seen(text, [0.5] * 100, seed=3), text)
        action.perform(text, 9)
        text.step_in_block += 1
        counts.append(len(action.commit))

    assert sum(counts) == 100
    assert all(12 <= count <= 40 for count in counts)
    assert look[0].open.all()


def test_ancestral_passes_over_steps_that_write_nothing() -> None:
    text = canvas(1)
    look = seen(text, [0.5])

    assert chosen(AncestralPolicy(50), text, look) == [0]
    assert AncestralPolicy(50).most_forwards(3) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: EveryStep(0),
        lambda: EvenSteps(0),
        lambda: FadingPace(-1),
        lambda: FadingPace(3, 0.0),
        lambda: AncestralPolicy(3, 1.0),
        lambda: FixedPacePolicy(spread=-1.0),
        lambda: FixedPacePolicy(spread=float("nan")),
        lambda: ThresholdPolicy(1.1),
        lambda: ThresholdPolicy(float("nan")),
        lambda: FactorPolicy(0.0),
        lambda: FactorPolicy(float("inf")),
        lambda: EntropyThresholdPolicy(-0.1),
        lambda: EntropyBoundPolicy(float("nan")),
        lambda: DilatedPolicy(1),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        wrong()
