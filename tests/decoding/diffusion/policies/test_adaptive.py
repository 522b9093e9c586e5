"""The certificate holds for all laws, and the policy keeps to it, looks back, and is as valid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.lists import SAMPLED, answered, whole_answer
from tests.decoding.diffusion.policies.looks import MASK, TRAITS, canvas, places, seen
from tests.decoding.diffusion.policies.test_stateful import with_shadow
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.loop import GREEDY
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, LANGUAGES
from weft.decoding.diffusion.policies.adaptive import Adaptive
from weft.decoding.diffusion.policies.certificate import gaps
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every
from weft.decoding.speculative.law import Shaping


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
    always=st.integers(0, 3),
)
def test_the_bound_holds_for_every_joint_law(
    seed: int, slots: int, tokens: int, sharp: float, always: int
) -> None:
    joint = joint_law(seed, slots, tokens, sharp)
    alone = [
        joint.sum(axis=tuple(other for other in range(slots) if other != slot))
        for slot in range(slots)
    ]
    doubt = np.array([1.0 - law.max() for law in alone])
    entropy = np.array([-(law * np.log(np.maximum(law, 1e-300))).sum() for law in alone])
    always %= slots
    bounds = gaps(doubt, entropy, always)

    assert len(bounds) == slots + 1
    assert bounds[0] == 0.0
    assert (np.diff(bounds) >= -1e-12).all()
    for count, bound in enumerate(bounds):
        chosen = sorted({always, *range(count)})
        dropped = tuple(slot for slot in range(slots) if slot not in chosen)
        together = joint.sum(axis=dropped)
        product = np.ones_like(together)
        for axis, slot in enumerate(chosen):
            shape = [-1 if at == axis else 1 for at in range(len(chosen))]
            product = product * alone[slot].reshape(shape)
        assert np.abs(together - product).sum() / 2 <= bound + 1e-9


def test_bounds_by_hand() -> None:
    doubt, entropy = np.array([0.01, 0.02, 0.5]), np.array([9.0, 9.0, 9.0])

    np.testing.assert_allclose(gaps(doubt, entropy, 2), [0, 0.02, 0.06, 0.06])
    np.testing.assert_allclose(gaps(doubt, entropy, 0), [0, 0, 0.02, 0.06])
    little = np.array([1e-4, 1e-4, 1e-4])
    np.testing.assert_allclose(gaps(doubt, little, 2), [0, 5e-5**0.5, 1e-4**0.5, 1e-4**0.5])


def proposed(policy: Adaptive, text: Canvas, confidence: list[float]) -> list[int]:
    look = seen(text, confidence, entropy=[9.0] * len(confidence))
    return places(policy.begin(text, TRAITS).propose(*look, text), text)


def test_the_leftmost_slot_and_what_is_sure_beside_it() -> None:
    text = canvas(5)
    assert proposed(Adaptive(risk=0.05), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [0, 1, 3]
    assert proposed(Adaptive(risk=0.02), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [0, 3]
    assert proposed(Adaptive(risk=0.0), text, [0.5, 0.99, 0.6, 0.995, 0.9]) == [0]
    # both sure slots on the left are passed over by the first that is not
    assert proposed(Adaptive(risk=0.05), text, [0.99, 0.98, 0.6, 0.995, 0.7]) == [0, 2, 3]
    assert proposed(Adaptive(risk=0.05), text, [0.999, 0.98, 0.98, 0.995, 0.99]) == [0, 1, 3, 4]
    assert proposed(Adaptive(risk=0.0), text, [1.0] * 5) == [0, 1, 2, 3, 4]


def test_the_risk_of_a_window_is_spent_once() -> None:
    text = canvas(6)
    work = Adaptive(risk=0.05).begin(text, TRAITS)
    found = []
    for _ in range(4):
        look = seen(text, [0.5, 0.99, 0.5, 0.985, 0.5, 0.98], entropy=[9.0] * 6)
        action = work.propose(*look, text)
        action.perform(text, MASK)
        found.append(places(action, text))

    # twice .01 + .015 is all there is: then one slot a pass
    assert found == [[0, 1, 3], [2], [4], [5]]
    text.block += 1
    text.remask(text.first + np.arange(6), MASK)
    look = seen(text, [0.5, 0.99, 0.5, 0.985, 0.5, 0.98], entropy=[9.0] * 6)
    assert places(work.propose(*look, text), text) == [0, 1, 3]


def looked_back(p: dict[int, float], drawn: list[float]) -> Action:
    """Slots 0, 1 and 3 of four are certified, and were drawn with these probabilities."""
    text = canvas(4)
    work = Adaptive(risk=0.1, care=0.05, doubt=0.5).begin(text, TRAITS)
    first = work.propose(*seen(text, [0.99, 0.99, 0.5, 0.99], entropy=[9.0] * 4, drawn=drawn), text)
    assert places(first, text) == [0, 1, 2, 3]
    first.perform(text, MASK)
    if not first.again:
        assert not len(work.shadows(text))
        return first
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
def test_true_predictions_are_never_led_astray(operation: str, shaping: Shaping) -> None:
    """As valid as one slot a pass, in no more passes; all at once where nothing depends."""
    n, count = items(operation), 6
    ours = answered(operation, n, count, whole_answer(Adaptive()), shaping, room=1)
    plain = Fixed(Every(1), "leftmost")
    theirs = answered(operation, n, count, whole_answer(plain), shaping, room=1)

    for one, other in zip(ours, theirs, strict=True):
        assert one.valid
        assert one.row.kept.tolist() == other.row.kept.tolist()
        assert one.row.counters.forwards <= other.row.counters.forwards
        if operation in DETERMINISTIC:
            assert one.row.counters.forwards == 1
