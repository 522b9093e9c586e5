"""The closed forms against counting, and against the figures of the research notes."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from evals.diffusion import closed_forms as forms
from tests.decoding.diffusion.oracle import measures
from weft.decoding.diffusion.oracle import closed_forms
from weft.decoding.diffusion.oracle.language import ListQuestion
from weft.decoding.diffusion.oracle.languages import DETERMINISTIC, random_question

# n: one-step validity of shuffle, replace_random, insert_random, remove_random
VALIDITY = {
    3: (0.2222, 0.4444, 0.1875, 0.8889),
    4: (0.0938, 0.4219, 0.1229, 0.7500),
    5: (0.0384, 0.4096, 0.0823, 0.6144),
    6: (0.0154, 0.4019, 0.0560, 0.4938),
    8: (0.0024, 0.3927, 0.0266, 0.3076),
    10: (0.0004, 0.3874, 0.0130, 0.1858),
    15: (0.0000, 0.3806, 0.0023, 0.0489),
}
NATS = {
    3: (1.504, 0.811, 1.818, 0.174),
    4: (2.367, 0.863, 2.347, 0.432),
    6: (4.171, 0.912, 3.383, 1.076),
}
RANDOM = ("shuffle", "replace_random", "insert_random", "remove_random")


def question(operation: str, n: int) -> ListQuestion:
    return random_question(operation, n, np.random.default_rng(n))


def test_the_figures_of_the_notes() -> None:
    for n, figures in VALIDITY.items():
        found = [closed_forms.one_step(operation, n) for operation in RANDOM]
        assert found == pytest.approx(figures, abs=6e-5)
    for n, nats in NATS.items():
        lost = [forms.correlation(operation, n) for operation in RANDOM]
        assert lost == pytest.approx(nats, abs=6e-4)


@pytest.mark.parametrize("operation", closed_forms.ONE_STEP)
def test_counting_comes_to_the_same(operation: str) -> None:
    for n in range(2, 7):
        asked_ = question(operation, n)
        assert measures.one_step(asked_) == pytest.approx(closed_forms.one_step(operation, n))
        lost = forms.correlation(operation, n)
        assert measures.correlation(asked_) == pytest.approx(lost, abs=1e-9)


def test_languages_without_a_closed_form_are_counted() -> None:
    assert measures.one_step(question("latin_row", 3)) == pytest.approx(0.25)
    assert measures.correlation(question("latin_row", 3)) == pytest.approx(2 * log(2))
    assert measures.one_step(question("brackets", 3)) == pytest.approx(0.36)
    with pytest.raises(KeyError):
        closed_forms.one_step("brackets", 3)
    with pytest.raises(KeyError):
        forms.correlation("brackets", 3)
    for operation in DETERMINISTIC:
        assert measures.correlation(question(operation, 5)) == 0.0


@pytest.mark.parametrize(
    ("n", "k", "shuffle", "replace"),
    [
        *((8, 1, 1.0, 1.0), (8, 2, 0.2734, 0.7803), (8, 4, 0.0385, 0.5823)),
        *((8, 8, 0.0024, 0.3927), (6, 1, 1.0, 1.0), (6, 2, 0.3125, 0.7335)),
        *((6, 3, 0.1235, 0.6044), (6, 6, 0.0154, 0.4019)),
    ],
)
def test_several_steps_of_the_notes(n: int, k: int, shuffle: float, replace: float) -> None:
    sizes = [k] * (n // k)

    assert forms.shuffle_in_steps(sizes) == pytest.approx(shuffle, abs=6e-5)
    assert forms.replace_in_steps(sizes) == pytest.approx(replace, abs=6e-5)


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [2, 2], [1, 3], [3, 1], [4], [2, 1, 1]])
def test_several_steps_are_counted_over_all_orders(sizes: list[int]) -> None:
    shuffle, replace = question("shuffle", 4), question("replace_random", 4)

    expected = forms.shuffle_in_steps(sizes)
    assert measures.random_order(shuffle, sizes) == pytest.approx(expected)
    expected = forms.replace_in_steps(sizes)
    assert measures.random_order(replace, sizes) == pytest.approx(expected)


def test_one_slot_a_step_is_always_right_and_one_step_is_one_step() -> None:
    for operation in ("insert_random", "brackets", "latin_row", "parity", "words_to_sentence"):
        asked_ = question(operation, 3)
        length = {"insert_random": 4, "brackets": 6, "parity": 4}.get(operation, 3)
        assert measures.random_order(asked_, [1] * length) == pytest.approx(1.0)
        once = measures.one_step(asked_)
        assert measures.random_order(asked_, [length]) == pytest.approx(once)
    with pytest.raises(ValueError, match="slots of an answer of 3"):
        measures.random_order(question("copy", 3), [2])
