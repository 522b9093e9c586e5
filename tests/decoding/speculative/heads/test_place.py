from __future__ import annotations

import numpy as np
import pytest

from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.place import Place
from weft.decoding.speculative.walk import Walk

LOGITS = np.zeros((1, 4), np.float32)


def test_nothing_is_forced_in_plain_decoding() -> None:
    place = Place()
    place.see(Seen((1, 2)))
    place.extend((1, 2, 3))
    assert place.forced == 0
    place.see(Seen((3, 5, 6), walk=Walk((0, 1), 7)))
    place.extend((5, 6, 7))
    assert place.forced == 0


@pytest.mark.parametrize("first", ["prompt", "pass"])
def test_a_prompt_that_was_read_whole(first: str) -> None:
    place, seen = Place(), Seen((1, 2, 3), logits=LOGITS)
    if first == "pass":
        place.see(seen)
    place.extend((1, 2, 3))
    if first == "prompt":
        place.see(seen)
    place.extend((4,))
    assert place.forced == 0
    place.extend((5, 6))
    assert place.forced == 2


def test_forced_tokens_are_counted_until_the_next_look() -> None:
    place = Place()
    place.extend((1, 2, 3))  # a prompt that nobody saw
    place.see(Seen((3,), walk=Walk((), 4)))
    place.extend((4,))
    place.extend((8, 9))
    assert place.forced == 2
    place.see(Seen((4, 8, 9, 5), walk=Walk((0,), 6)))
    place.extend((5, 6))
    assert place.forced == 0
