"""The certificate holds for all laws, and the policy keeps to it, looks back, and is as valid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.lists import SAMPLED, answered, whole_answer
from tests.decoding.diffusion.policies.pass_statistics import MASK, TRAITS, canvas, places, seen
from tests.decoding.diffusion.policies.test_stateful import with_shadow
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES
from weft.decoding.diffusion.policies.adaptive import AdaptivePolicy, variation_bounds
from weft.decoding.diffusion.policies.fixed_pace import EveryStep, FixedPacePolicy
from weft.decoding.sampling import SamplingParams


def joint_law(seed: int, slots: int, tokens: int, sharp: float) -> NDArray[np.float64]:
    """Some law over texts, from nearly even to nearly certain."""
    random = np.random.default_rng(seed)
    weights = np.exp(sharp * random.normal(size=(tokens,) * slots))
    law: NDArray[np.float64] = weights / weights.sum()
    return law


@given(
    seed=st.integers(0, 10**6),
    slots=st.integers(2, 4),
    tokens=st.integers(2, 3),
    sharp=st.sampled_from([0.1, 1.0, 3.0, 6.0, 12.0]),
)
def test_the_bound_holds_for_every_joint_law(
    seed: int, slots: int, tokens: int, sharp: float
) -> None:
    joint = joint_law(seed, slots, tokens, sharp)
    alone = [
        joint.sum(axis=tuple(other for other in range(slots) if other != slot))
        for slot in range(slots)
    ]
    doubt = np.array([1.0 - law.max() for law in alone])
    entropy = np.array([-(law * np.log(np.maximum(law, 1e-300))).sum() for law in alone])
    bounds = variation_bounds(doubt, entropy)

    assert len(bounds) == slots
    assert bounds[0] == 0.0
    assert (np.diff(bounds) >= -1e-12).all()
    for count, bound in enumerate(bounds, 1):
        chosen = range(count)
        dropped = tuple(slot for slot in range(slots) if slot not in chosen)
        together = joint.sum(axis=dropped)
        product = np.ones_like(together)
        for axis, slot in enumerate(chosen):
            shape = [-1 if at == axis else 1 for at in range(len(chosen))]
            product = product * alone[slot].reshape(shape)
        assert np.abs(together - product).sum() / 2 <= bound + 1e-9


def test_bounds_by_hand() -> None:
    doubt, much = np.array([0.01, 0.02, 0.5]), np.array([9.0, 9.0, 9.0])

    np.testing.assert_allclose(variation_bounds(doubt, much), [0, 0.02, 0.06])
    np.testing.assert_allclose(variation_bounds(doubt[1:], much[1:]), [0, 0.04])
    np.testing.assert_allclose(
        variation_bounds(np.array([0.01, 0.01, 0.01]), much), [0, 0.02, 0.03]
    )
    np.testing.assert_allclose(variation_bounds(doubt, np.full(3, 1e-4)), [0, 5e-5**0.5, 1e-4**0.5])


def proposed(policy: AdaptivePolicy, text: Canvas, confidence: list[float]) -> list[int]:
    look = seen(text, confidence, entropy=[9.0] * len(confidence))
    return places(policy.begin(text, TRAITS).propose(*look, text), text)


def test_what_is_sure_together_or_the_leftmost_slot() -> None:
    text = canvas(5)
    assert proposed(AdaptivePolicy(risk=0.05), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [1, 3]
    assert proposed(AdaptivePolicy(risk=0.01), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [1, 3]
    assert proposed(AdaptivePolicy(risk=0.009), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [0]
    assert proposed(AdaptivePolicy(risk=0.001), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [0]
    assert proposed(AdaptivePolicy(risk=0.05), text, [0.98, 0.98, 0.98, 0.98, 0.98]) == [0, 1]
    assert proposed(AdaptivePolicy(risk=0.0), text, [1.0] * 5) == [0, 1, 2, 3, 4]


def test_the_risk_of_a_window_is_spent_once() -> None:
    text = canvas(6)
    work = AdaptivePolicy(risk=0.05).begin(text, TRAITS)
    look = [0.5, 0.99, 0.5, 0.98, 0.97, 0.98]
    found = []
    for _ in range(5):
        action = work.propose(*seen(text, look, entropy=[9.0] * 6), text)
        action.perform(text, MASK)
        found.append(places(action, text))

    # .01 + .02 + .02 is all there is: then one slot a pass, the leftmost
    assert found == [[1, 3, 5], [0], [2], [4], []]
    text.block += 1
    text.remask(text.first + np.arange(6), MASK)
    assert places(work.propose(*seen(text, look, entropy=[9.0] * 6), text), text) == [1, 3, 5]


def looked_back(p: dict[int, float], drawn: list[float]) -> Action:
    """Slots 0, 1 and 3 of four are certified, and were drawn with these probabilities."""
    text = canvas(4)
    work = AdaptivePolicy(risk=0.1, care=0.05).begin(text, TRAITS)
    look = seen(text, [0.99, 0.99, 0.5, 0.99], entropy=[9.0] * 4, drawn=drawn)
    first = work.propose(*look, text)
    assert places(first, text) == [0, 1, 3]
    first.perform(text, MASK)
    assert not len(work.shadows(text))  # not before all is written
    second = work.propose(*seen(text, [0.99, 0.99, 0.5, 0.99], drawn=drawn), text)
    assert places(second, text) == [2]
    second.perform(text, MASK)
    if not second.again:
        assert not len(work.shadows(text))
        return second
    assert (work.shadows(text) - text.first).tolist() == [0, 1, 3]
    return work.propose(*with_shadow(seen(text, [1.0] * 4), text, p), text)


def test_certified_slots_that_the_others_do_not_expect_are_opened_again() -> None:
    drawn = [0.97, 0.98, 0.5, 0.99]  # .03 + .02 + .01 are enough to care
    doubted = looked_back({0: 0.4, 1: 0.6, 3: 0.01}, drawn)

    assert doubted.remask.tolist() == [2, 5]
    assert doubted.again
    agreed = looked_back({0: 0.5, 1: 0.6, 3: 1.0}, drawn)
    assert not len(agreed.remask)
    assert not agreed.again


def test_no_look_where_nothing_was_doubtful() -> None:
    assert not looked_back({}, [0.99, 0.99, 0.1, 0.99]).again  # slot 2 stood alone
    unlikely = looked_back({0: 1.0, 1: 0.2, 3: 1.0}, [0.99, 0.01, 0.5, 0.99])
    assert unlikely.remask.tolist() == [3]  # one certified slot drew what hardly ever comes


def items(operation: str) -> int:
    return min(LANGUAGES[operation].longest, 5) if operation != "latin_square" else 3


@pytest.mark.parametrize("shaping", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("operation", LANGUAGES)
def test_true_predictions_are_never_led_astray(operation: str, shaping: SamplingParams) -> None:
    """As valid as one slot a pass, in no more passes; all at once where nothing depends."""
    n, count = items(operation), 6
    ours = answered(operation, n, count, whole_answer(AdaptivePolicy()), shaping, room=1)
    plain = FixedPacePolicy(EveryStep(1), "leftmost")
    theirs = answered(operation, n, count, whole_answer(plain), shaping, room=1)

    for one, other in zip(ours, theirs, strict=True):
        assert one.valid
        assert one.row.kept.tolist() == other.row.kept.tolist()
        assert one.row.counters.forwards <= other.row.counters.forwards
        if operation in DETERMINISTIC:
            assert one.row.counters.forwards == 1
