"""Canvases: which slots may be written, and what happens when slots come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.canvas import Canvas

MASK = 9


def canvas(length: int = 4, limit: int = 0) -> Canvas:
    made = Canvas([1, 2], length, MASK, limit=limit)
    made.window = range(2, made.length)
    return made


def test_the_prompt_is_frozen_and_the_answer_is_open() -> None:
    one = canvas()

    assert one.ids.tolist() == [1, 2, MASK, MASK, MASK, MASK]
    assert one.frozen.tolist() == [True, True, False, False, False, False]
    assert one.open.tolist() == [2, 3, 4, 5]


def test_a_mask_id_in_the_prompt_is_no_open_slot() -> None:
    one = Canvas([MASK, 1, MASK], 1, MASK)
    one.window = range(one.length)

    assert one.open.tolist() == [3]
    with pytest.raises(ValueError, match=r"\[0\] are decided"):
        one.commit([0], [5])


def test_literals_are_decided_and_frozen() -> None:
    one = Canvas([1], 3, MASK, literals={1: 7})
    one.window = range(1, 4)

    assert one.ids.tolist() == [1, MASK, 7, MASK]
    assert one.open.tolist() == [1, 3]
    with pytest.raises(ValueError, match="frozen"):
        one.edit([2], [3])
    with pytest.raises(ValueError, match="frozen"):
        one.delete(2)
    with pytest.raises(ValueError, match="no slot 3"):
        Canvas([1], 3, MASK, literals={3: 7})


def test_a_slot_is_decided_once_and_opened_again() -> None:
    one = canvas()
    one.commit([3], [5])
    with pytest.raises(ValueError, match=r"\[3\] are decided"):
        one.commit([3], [6])

    one.edit([3], [6])
    assert one.ids[3] == 6
    one.remask([3], MASK)

    assert one.ids[3] == MASK
    assert one.undecided[3]
    assert one.visits.tolist() == [0, 0, 0, 1, 0, 0]


def test_only_ours_are_edited_or_opened() -> None:
    one = canvas()
    for write in (one.edit, one.remask):
        with pytest.raises(ValueError, match=r"\[0\] are frozen or undecided"):
            write([0], 5)
    with pytest.raises(ValueError, match=r"\[2\] are frozen or undecided"):
        one.edit([2], [5])


def test_a_canvas_grows_to_its_limit() -> None:
    one = canvas(length=2, limit=5)

    assert one.grow(2, MASK) == 1
    assert one.grow(2, MASK) == 0
    assert one.ids.tolist() == [1, 2, MASK, MASK, MASK]
    assert one.undecided[4]
    assert one.ours[4]


def test_trimming_cuts_the_window_and_never_the_prompt() -> None:
    one = canvas()
    one.trim(3)

    assert one.length == 3
    assert one.window == range(2, 3)
    with pytest.raises(ValueError, match="cut the prompt"):
        one.trim(1)


def test_decided_to_is_the_first_gap() -> None:
    one = canvas()
    one.commit([2, 4], [5, 6])
    assert one.decided_to == 3
    one.commit([3, 5], [5, 6])
    assert one.decided_to == 6


def test_inserts_and_deletes_are_done_from_the_right() -> None:
    one = canvas()
    one.commit([2, 3, 4, 5], [3, 4, 5, 6])
    slots = np.array([3])

    Action(delete=slots, insert=np.array([5])).perform(one, MASK)

    assert one.ids.tolist() == [1, 2, 3, 5, MASK, 6]
    assert one.undecided.tolist() == [False, False, False, False, True, False]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10, unique=True))
def test_writings_are_in_order(slots: list[int]) -> None:
    ids = [slot + 100 for slot in slots]
    writing = SlotTokens.of(slots, ids)

    assert writing.slots.tolist() == sorted(slots)
    assert (writing.ids - writing.slots == 100).all()
    with pytest.raises(ValueError, match="tokens"):
        SlotTokens.of(slots, [])


def test_a_supposed_canvas_shares_nothing() -> None:
    one = canvas()
    one.commit([2], [3])

    other = one.supposing([4, 3], [6, 5])
    other.edit([2], [7])
    one.remask([2], MASK)

    assert other.ids.tolist() == [1, 2, 7, 5, 6, MASK]
    assert other.open.tolist() == [5]
    assert one.ids.tolist() == [1, 2, MASK, MASK, MASK, MASK]
    assert other.visits.tolist() == [0] * 6
    with pytest.raises(ValueError, match="decided"):
        other.supposing([3], [1])
