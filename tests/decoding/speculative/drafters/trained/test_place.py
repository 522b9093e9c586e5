from __future__ import annotations

import numpy as np
import pytest

from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.drafter import TargetOutputs
from weft.decoding.speculative.drafters.trained.rows import GuessPosition

LOGITS = np.zeros((1, 4), np.float32)


def test_nothing_is_forced_in_plain_decoding() -> None:
    place = GuessPosition()
    place.see(TargetOutputs((1, 2)))
    place.extend((1, 2, 3))
    assert place.forced == 0
    place.see(TargetOutputs((3, 5, 6), walk=AcceptedPath((0, 1), 7)))
    place.extend((5, 6, 7))
    assert place.forced == 0


@pytest.mark.parametrize("first", ["prompt", "pass"])
def test_a_prompt_that_was_read_whole(first: str) -> None:
    place, seen = GuessPosition(), TargetOutputs((1, 2, 3), logits=LOGITS)
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
    place = GuessPosition()
    place.extend((1, 2, 3))  # a prompt that nobody saw
    place.see(TargetOutputs((3,), walk=AcceptedPath((), 4)))
    place.extend((4,))
    place.extend((8, 9))
    assert place.forced == 2
    place.see(TargetOutputs((4, 8, 9, 5), walk=AcceptedPath((0,), 6)))
    place.extend((5, 6))
    assert place.forced == 0
