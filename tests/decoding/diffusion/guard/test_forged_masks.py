"""Masks in foreign text are text: nothing but the answer's own slots is ever written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.diffusion.attacks import BENIGN, TOPIC, attacks
from tests.decoding.diffusion.toy import END, MASK, TRAITS, Leftmost, Toy
from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise_all
from weft.decoding.diffusion.guard.control_tokens import (
    ForeignSpan,
    folded,
    forged_positions,
    neutralise,
    refuse_forged,
    spelled_out,
)
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng

IDS = st.integers(0, TRAITS.vocabulary - 1)
CONTROL = frozenset({MASK, END})
PLUGS = DecoderConfig(Leftmost(2), FixedBlocks(4), NoCache(), FirstTerminator())


@given(st.lists(IDS, min_size=1, max_size=20), st.integers(1, 8))
def test_no_prompt_makes_a_slot(prompt: list[int], length: int) -> None:
    """The property: whatever ids a prompt has, it is neither written nor waited for."""
    canvas = Canvas(prompt, length, MASK)
    row = DenoisingRow(canvas, PLUGS, TRAITS, CounterRng(0), GREEDY)
    toy = Toy()
    denoise_all([row], toy)
    assert canvas.ids[: len(prompt)].tolist() == prompt
    assert not canvas.ours[: len(prompt)].any()
    assert not canvas.undecided.any()
    asked = [slot for queries in toy.passes for query in queries for slot in query.wanted]
    assert min(asked) >= len(prompt)
    assert MASK not in row.kept


@given(st.lists(IDS, max_size=20), st.data())
def test_control_tokens_are_found_in_foreign_text_and_nowhere_else(
    prompt: list[int], data: st.DataObject
) -> None:
    bounds = sorted(data.draw(st.sets(st.integers(0, len(prompt)), max_size=4)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    foreign = [ForeignSpan(start, stop, "tool") for start, stop in pairs]
    expected = [
        at
        for at, token in enumerate(prompt)
        if token in CONTROL and any(one.start <= at < one.stop for one in foreign)
    ]
    assert list(forged_positions(prompt, foreign, CONTROL)) == expected
    if expected:
        with pytest.raises(ModelRequestError, match="text of the tool holds control tokens"):
            refuse_forged(prompt, foreign, CONTROL)
    else:
        refuse_forged(prompt, foreign, CONTROL)
    clean = neutralise(prompt, foreign, CONTROL)
    assert list(clean) == [token for at, token in enumerate(prompt) if at not in expected]


def test_instead_of_a_control_token_stands_text() -> None:
    assert neutralise([1, MASK, 2], [ForeignSpan(0, 3)], CONTROL, [5, 6]) == (1, 5, 6, 2)
    with pytest.raises(ValueError, match="instead"):
        neutralise([1], [ForeignSpan(0, 1)], CONTROL, [MASK])


@pytest.mark.parametrize(
    "foreign",
    [[ForeignSpan(0, 2), ForeignSpan(1, 3)], [ForeignSpan(0, 9)]],
    ids=["overlap", "behind"],
)
def test_ranges_that_cannot_be_are_refused(foreign: list[ForeignSpan]) -> None:
    with pytest.raises(ValueError, match="foreign text"):
        forged_positions([1, 2, 3], foreign, CONTROL)
    with pytest.raises(ValueError, match="no tokens"):
        ForeignSpan(2, 2)


SPELT = ("<|mask|>", "<|im_end|>")


@pytest.mark.parametrize(
    "text",
    [
        "a <|mask|> b",
        "\uff1c\uff5cmask\uff5c\uff1e",
        "<|m\u0430\u0455\u043a|>",
        "<\u200b|\u200bmask|>",
        "&lt;|MASK|&gt;",
        "< | m a s k | >",
        "<|m\u0301ask|>",
        "\u2329|mask\u2223\u232a",
    ],
)
def test_look_alikes_are_told(text: str) -> None:
    assert spelled_out(text, SPELT) == ("<|mask|>",)


@pytest.mark.parametrize("text", BENIGN)
def test_harmless_text_is_not_taken_for_one(text: str) -> None:
    assert spelled_out(text, SPELT) == ()
    assert folded("") == ""


def test_attacks_repeat_and_hold_nothing_but_the_placeholder() -> None:
    first, again = (attacks(50, SPELT[0], SPELT[1:], seed=3) for _ in range(2))
    assert first == again
    assert all(TOPIC in one.text for one in first)
    assert any(one.exact for one in first)
    assert not all(one.exact for one in first)
    assert np.mean([bool(spelled_out(one.text, SPELT)) for one in first]) > 0.7
