"""Guidance that changes logits: away from what needs no prompt, and without forbidden tokens."""

from __future__ import annotations

import numpy as np
import pytest

from tests.decoding.diffusion.lists import ORACLE, answered
from tests.decoding.diffusion.toy import END, MASK, TRAITS, AtEnd, Everything, Fours, Leftmost, Toy
from weft.core.errors import CapabilityError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import decoder_config
from weft.decoding.diffusion.denoising import denoise_text
from weft.decoding.diffusion.guidance.logits import ClassifierFreeGuidance, ForbiddenTokens
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.sampling import CounterRng


def test_guidance_is_the_published_formula_and_what_is_forbidden_stays_so() -> None:
    guiding = ClassifierFreeGuidance(1.5).begin(Canvas([1], 1, MASK), TRAITS)
    inf = np.inf
    with_prompt = np.array([[1.0, 2.0, -inf, 3.0, -inf]], dtype=np.float32)
    without = np.array([[0.5, 2.5, 1.0, -inf, -inf]], dtype=np.float32)
    slots = np.array([1])
    found = guiding.guided(with_prompt, slots, without, Canvas([1], 1, MASK))

    assert found.tolist() == [[0.5 + 2.5 * (1.0 - 0.5), 2.5 + 2.5 * (2.0 - 2.5), -inf, 3.0, -inf]]
    assert found.dtype == np.float32


def test_the_second_reading_masks_the_prompt_and_keeps_nothing() -> None:
    toy = Toy()
    plugs = DecoderConfig(
        Leftmost(2), Fours(), Everything(), AtEnd(), guidance=(ClassifierFreeGuidance(1.0),)
    )
    row = denoise_text(toy, Canvas([1, 2, 3], 2, MASK), plugs, CounterRng(0))

    main, beside = toy.passes[0]
    assert beside.read.tolist() == [MASK] * 5
    assert main.ids is None
    assert (beside.scratch, beside.kind) == (True, "unconditional")
    assert beside.wanted.tolist() == main.wanted.tolist() == [3, 4]
    assert (row.counters.forwards, row.counters.tokens) == (1, 10)
    assert row.kept.tolist() == [3, 4]


def test_a_model_without_a_mask_is_refused() -> None:
    with pytest.raises(CapabilityError, match="without a mask"):
        ClassifierFreeGuidance(1.0).begin(
            Canvas([1], 1, 0), ModelTraits(10, None, frozenset({END}))
        )
    with pytest.raises(ValueError, match="a scale of 0"):
        ClassifierFreeGuidance(0)


def test_forbidden_tokens_are_not_written_unless_nothing_else_is_possible() -> None:
    guiding = ForbiddenTokens(frozenset({1, 3})).begin(Canvas([1], 2, MASK), TRAITS)
    inf = np.inf
    logits = np.array([[0.0, 9.0, 1.0, 8.0], [-inf, 9.0, -inf, 8.0]], dtype=np.float32)
    before = logits.copy()
    found = guiding.guided(logits, np.array([1, 2]), None, Canvas([1], 2, MASK))

    assert found.tolist() == [[0.0, -inf, 1.0, -inf], [-inf, 9.0, -inf, 8.0]]
    np.testing.assert_array_equal(logits, before)


def test_llada_with_guidance_writes_what_it_writes_without_where_all_is_certain() -> None:
    for options in ({"guidance": 2.0}, {"ends": "never"}, {"ends": "last"}):
        plugs = decoder_config("llada", ORACLE.traits, options)
        for one in answered("sort", 4, 2, plugs, room=1):
            assert one.valid
            assert one.row.finish == "stop"
