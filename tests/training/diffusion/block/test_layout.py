"""The layout of a text: who sees whom, who predicts what, and that decoding asks the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from tests.decoding.diffusion.network import small
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.query import Query
from weft.training.diffusion.block.layout import (
    Ids,
    LayoutBuilder,
    NoiseSampler,
    SlotNoise,
    TrainingLayout,
)

MASK, END = small.MASK, small.END


@st.composite
def texts(draw: st.DrawFn) -> tuple[LayoutBuilder, Ids, int, list[SlotNoise]]:
    laying = LayoutBuilder(draw(st.sampled_from([1, 2, 4])), MASK, END, shifted=draw(st.booleans()))
    length = draw(st.integers(2, 14))
    tokens = np.array([*small.text(length - 1, draw(st.integers(0, 9))), END])
    answer = draw(st.integers(1, length - 1))
    slots = laying.slots(tokens)
    chance = np.random.default_rng(draw(st.integers(0, 99)))
    noising = NoiseSampler(draw(st.booleans()), draw(st.booleans()))
    return laying, slots, answer, noising.drawn(len(slots), answer, laying.block, chance)


def laid(
    laying: LayoutBuilder, tokens: Ids, answer: int, noises: list[SlotNoise]
) -> TrainingLayout:
    return laying.layout(tokens, [laying.noisy(tokens, answer, noise) for noise in noises])


def rows_of(laying: LayoutBuilder, tokens: Ids, answer: int, copies: int) -> list[tuple[int, int]]:
    """(copy, slot) of each row; copy 0 is the clean one."""
    first = answer // laying.block * laying.block
    clean = [(0, slot) for slot in range(len(tokens) - laying.block)]
    return clean + [(c, slot) for c in range(1, copies + 1) for slot in range(first, len(tokens))]


@given(texts())
def test_rows_see_clean_blocks_before_and_their_own(
    given_text: tuple[LayoutBuilder, Ids, int, list[SlotNoise]],
) -> None:
    laying, tokens, answer, noises = given_text
    made = laid(laying, tokens, answer, noises)
    rows = rows_of(laying, tokens, answer, len(noises))

    assert made.slots.tolist() == [slot for _, slot in rows]
    for i, (copy, slot) in enumerate(rows):
        for j, (other, seen) in enumerate(rows):
            earlier = other == 0 and seen // laying.block < slot // laying.block
            own = other == copy and seen // laying.block == slot // laying.block
            assert made.sees[i, j] == (earlier or own), (i, j)


@given(texts())
def test_goals_are_the_open_slots_and_never_seen(
    given_text: tuple[LayoutBuilder, Ids, int, list[SlotNoise]],
) -> None:
    laying, tokens, answer, noises = given_text
    made = laid(laying, tokens, answer, noises)
    rows = rows_of(laying, tokens, answer, len(noises))
    goals = [(c, s) for c, noise in enumerate(noises, 1) for s in np.flatnonzero(noise.hidden)]

    assert made.goals.tolist() == [tokens[slot] for _, slot in goals]
    for (copy, slot), asked in zip(goals, made.predictors, strict=True):
        assert slot >= answer
        by = rows[asked]
        assert by[1] == slot - laying.shifted
        assert by[0] == (0 if laying.shifted and slot % laying.block == 0 else copy)
        seen = [rows[at] for at in np.flatnonzero(made.sees[asked])]
        assert (0, slot) not in seen
        [own] = [at for at, row in enumerate(rows) if row == (copy, slot)]
        assert made.ids[own] == MASK
    for at, (copy, slot) in enumerate(rows):
        hidden = copy > 0 and noises[copy - 1].hidden[slot]
        assert made.ids[at] == (MASK if hidden else tokens[slot])


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("answer", [5, 8, 9])
def test_decoding_asks_what_was_learnt(shifted: bool, answer: int) -> None:
    """The logits of an open slot in a lesson are those that an adapter finds for a canvas whose
    blocks before are decided.
    """
    block = 4
    network = small.network()
    laying = LayoutBuilder(block, MASK, END, shifted=shifted)
    tokens = laying.slots(np.array([*small.text(13), END]))
    chance = np.random.default_rng(3)
    noises = NoiseSampler().drawn(len(tokens), answer, block, chance)
    made = laid(laying, tokens, answer, noises)
    learnt = _logits(made)[made.predictors]

    traits = ModelTraits(
        small.VOCABULARY, MASK, small.ENDS, frozenset(), "block_causal", block, shifted
    )
    found = []
    for noise in noises:
        for slot in np.flatnonzero(noise.hidden):
            stop = (slot // block + 1) * block
            canvas = Canvas(tokens[:answer].tolist(), stop - answer, MASK)
            decided = np.flatnonzero(~noise.hidden[answer:stop]) + answer
            before = np.arange(answer, max(answer, stop - block))
            known = np.union1d(decided, before)
            canvas.commit(known, tokens[known])
            query = Query(canvas, np.arange(stop), np.array([slot]), stop)
            found.append(NetworkAdapter(network, traits).forward([query])[0][0])
    keep = np.arange(small.VOCABULARY) != MASK
    np.testing.assert_allclose(learnt[:, keep], np.array(found)[:, keep], atol=2e-4)


def test_a_text_that_was_cut_off_keeps_whole_blocks() -> None:
    laying = LayoutBuilder(4, MASK, END)

    assert laying.slots(np.array([1, 2, 3, 4, 5])).tolist() == [1, 2, 3, 4]
    assert laying.slots(np.array([1, 2, 3, 4, END])).tolist() == [1, 2, 3, 4, END, END, END, END]


@given(st.integers(1, 40), st.integers(0, 39), st.sampled_from([1, 4, 8]), st.integers(0, 50))
def test_complements_share_the_answer(slots: int, answer: int, block: int, seed: int) -> None:
    one, other = NoiseSampler().drawn(slots, answer, block, np.random.default_rng(seed))

    assert not (one.hidden & other.hidden).any()
    assert ((one.hidden | other.hidden) == (np.arange(slots) >= answer)).all()
    assert (one.weights == 1.0).all()


def test_weights_make_every_slot_count_alike_on_average() -> None:
    """One over the level times how often a slot is open: one."""
    chance = np.random.default_rng(0)
    total = np.zeros(8)
    for _ in range(4000):
        [noise] = NoiseSampler(complement=False, weighted=True).drawn(8, 2, 4, chance)
        total += noise.hidden * noise.weights
        assert (noise.weights <= 10.0).all()
    np.testing.assert_allclose(total[2:] / 4000, 1.0, atol=0.1)
    assert not total[:2].any()


def test_blocks_have_levels_of_their_own() -> None:
    chance = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        [noise, _] = NoiseSampler().drawn(64, 0, 32, chance)
        shares.append((noise.hidden[:32].mean(), noise.hidden[32:].mean()))
    apart = np.abs(np.diff(np.array(shares), axis=1))
    assert apart.mean() > 0.2


def test_a_level_can_be_given() -> None:
    [noise, _] = NoiseSampler().drawn(4000, 0, 8, np.random.default_rng(0), level=0.5)

    assert abs(noise.hidden.mean() - 0.5) < 0.03


def _logits(made: TrainingLayout) -> NDArray[np.float32]:
    """By transformers' own attention with a mask, as a lesson computes, with the same weights."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(small.llama(), attn_implementation="sdpa").eval()
    with torch.no_grad():
        output = model(
            input_ids=torch.from_numpy(made.ids)[None],
            position_ids=torch.from_numpy(made.slots)[None],
            attention_mask=torch.from_numpy(made.sees)[None, None],
            use_cache=False,
        )
    found: NDArray[np.float32] = output.logits[0].numpy()
    return found
