"""Policies that remember, take back and edit, by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.decoding.diffusion.policies.pass_statistics import (
    END,
    MASK,
    TRAITS,
    canvas,
    chosen,
    places,
    seen,
)
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.confidence import HierarchyPolicy, ThresholdPolicy
from weft.decoding.diffusion.policies.editing import IndelPolicy, TokenEditPolicy
from weft.decoding.diffusion.policies.history import CreditPolicy, KlassPolicy, SmoothingPolicy
from weft.decoding.diffusion.policies.remasking import (
    RemdmPolicy,
    RunningConfidencePolicy,
    WinoPolicy,
)
from weft.decoding.diffusion.policies.uniform_state import UniformStatePolicy
from weft.decoding.diffusion.stats import SampledTokens, Stats

Look = tuple[Stats, SampledTokens]


def with_kl(look: Look, kl: Sequence[float]) -> Look:
    return replace(look[0], kl=np.array(kl)), look[1]


def with_shadow(look: Look, text: Canvas, p: dict[int, float]) -> Look:
    """The written slots, by their place in the answer, are expected with these probabilities."""
    slots = np.array(sorted(p), dtype=np.int64) + text.first
    logits = np.full((len(slots), TRAITS.vocabulary), -np.inf, dtype=np.float32)
    with np.errstate(divide="ignore"):
        for row, slot in enumerate(slots):
            expected = p[int(slot) - text.first]
            logits[row, 7] = np.log(1 - expected)
            logits[row, text.ids[slot]] = np.log(expected)
    return replace(look[0], shadow=(slots, logits)), look[1]


def test_klass_waits_until_predictions_stand_still() -> None:
    text = canvas(4)
    work = KlassPolicy(confidence=0.6, divergence=0.01, history=2).begin(text, TRAITS)
    look = seen(text, [0.7, 0.8, 0.3, 0.9])
    kl = [0.001, 0.001, 0.001, 0.5]

    first = places(work.propose(*with_kl(look, [np.nan] * 4), text), text)
    second = places(work.propose(*with_kl(look, kl), text), text)
    third = places(work.propose(*with_kl(look, kl), text), text)
    moved = places(work.propose(*with_kl(look, [0.001, 0.5, 0.001, 0.001]), text), text)

    assert first == second == [3]  # the surest, since none was calm for two passes
    assert third == [0, 1]  # 2 is not sure, 3 not calm
    assert moved == [0]  # 3 has been calm but once, and 1 starts anew


def test_hierarchy_takes_the_best_of_each_gap() -> None:
    text = canvas(8)
    text.commit([text.first + 2, text.first + 5], [1, 1])
    look = seen(text, [0.5, 0.45, 0.99, 0.2, 0.3, 0.99, 0.95, 0.91])

    assert chosen(HierarchyPolicy(high=0.9, low=0.4), text, look) == [0, 6, 7]
    assert chosen(HierarchyPolicy(high=1.0, low=0.0), text, look) == [0, 4, 6]
    assert chosen(HierarchyPolicy(high=1.0, low=1.0), text, look) == [6]


def test_credit_is_given_to_tokens_that_stay() -> None:
    text = canvas(2)
    policy = CreditPolicy(ThresholdPolicy(0.9), weight=1.0, decay=0.5, power=1.0)
    work = policy.begin(text, TRAITS)
    slots = text.open
    logits = np.zeros((2, TRAITS.vocabulary), dtype=np.float32)
    logits[:, 4] = np.log(9.0)  # p of token 4 is 9 / 18

    once = work.adjust(logits, slots, text)
    twice = work.adjust(logits, slots, text)
    text.commit([slots[0]], [4])
    text.remask([slots[0]], MASK)
    anew = work.adjust(logits, slots, text)

    assert once[0, 4] - logits[0, 4] == pytest.approx(np.log(1.5))
    assert twice[0, 4] - logits[0, 4] == pytest.approx(np.log(1.75))  # .5 * .5 + .5
    assert anew[0, 4] == once[0, 4]  # opened again: no credit is left
    assert anew[1, 4] - logits[1, 4] == pytest.approx(np.log(1.875))
    assert (once[:, :4] == 0).all()
    assert logits[0, 4] == np.float32(np.log(9.0))  # what was given is not written to


def test_wino_takes_back_fewer_than_it_writes() -> None:
    text = canvas(6)
    text.commit(text.first + np.arange(3), [1, 2, 3])
    look = seen(text, [1.0, 1.0, 1.0, 0.7, 0.8, 0.2])
    work = WinoPolicy(draft=0.6, verify=0.9).begin(text, TRAITS)

    action = work.propose(*with_shadow(look, text, {0: 0.5, 1: 0.4, 2: 0.95}), text)

    assert work.shadows(text).tolist() == [2, 3, 4]
    assert places(action, text) == [3, 4]
    assert action.remask.tolist() == [text.first + 1]  # the worst; two written, so one at most
    alone = work.propose(*with_shadow(seen(text, [1, 1, 1, 0.1, 0.3, 0.2]), text, {0: 0.1}), text)
    assert places(alone, text) == [4]
    assert not len(alone.remask)


def test_wino_drafts_no_more_than_its_cap() -> None:
    text = canvas(10)
    sure = [0.9 + 0.001 * place for place in range(10)]

    assert chosen(WinoPolicy(share=0.7), text, seen(text, sure)) == [3, 4, 5, 6, 7, 8, 9]
    assert chosen(WinoPolicy(share=0.1, few=5), text, seen(text, sure)) == [5, 6, 7, 8, 9]
    assert chosen(WinoPolicy(many=2, few=2), text, seen(text, sure)) == [8, 9]


def test_running_confidence_opens_what_was_outrun() -> None:
    text = canvas(4)
    work = RunningConfidencePolicy(count=1).begin(text, TRAITS)
    first = work.propose(*seen(text, [0.3, 0.6, 0.2, 0.5]), text)
    first.perform(text, MASK)
    text.step_in_block = 1
    second = work.propose(*seen(text, [0.3, 1.0, 0.8, 0.7]), text)

    assert places(first, text) == [1]
    assert places(second, text) == [2, 3]  # .8 and .7 have outrun .6
    assert second.remask.tolist() == [text.first + 1]


def test_remdm_makes_up_for_what_it_opens() -> None:
    text = canvas(4)
    work = RemdmPolicy(count=1, rate=1.0, budget=1).begin(text, TRAITS)
    opened = 0
    for step in range(4):
        text.step = text.step_in_block = step
        action = work.propose(*seen(text, [0.5, 0.6, 0.7, 0.8]), text)
        opened += len(action.remask)
        action.perform(text, MASK)
        assert int(text.undecided.sum()) == 3 - step

    assert opened == 1


EDITS = {"ids": [7, 7, 7, 7]}


def edited(policy: TokenEditPolicy, confidence: Sequence[float], text: Canvas) -> Action:
    return policy.begin(text, TRAITS).propose(*seen(text, confidence, ids=[7, 7, 3, 7]), text)


def test_editing_overwrites_what_another_token_beats() -> None:
    text = canvas(4)
    text.commit(text.first + np.arange(3), [1, 2, 3])

    action = edited(TokenEditPolicy(0.7, 0.5), [0.6, 0.4, 0.9, 0.8], text)

    assert action.edit.slots.tolist() == [text.first]  # .4 is too little, 3 is 3 already
    assert action.edit.ids.tolist() == [7]
    assert places(action, text) == [3]
    assert action.again


def test_an_edit_threshold_of_zero_is_not_off() -> None:
    text = canvas(4)
    text.commit(text.first + np.arange(3), [1, 2, 3])

    assert len(edited(TokenEditPolicy(0.7, 0.0), [0.1] * 4, text).edit) == 2
    off = TokenEditPolicy(0.7, None)
    assert not len(edited(off, [0.1] * 4, text).edit)
    assert not edited(off, [0.1] * 4, text).again
    assert off.needs == frozenset()
    assert TokenEditPolicy(0.7, 0.0).needs == {"decided"}


def test_reviews_end_when_nothing_changes_or_their_number_is_up() -> None:
    text = canvas(2)
    text.commit(text.first + np.arange(2), [1, 2])
    work = TokenEditPolicy(0.7, 0.5, reviews=2).begin(text, TRAITS)

    changed = work.propose(*seen(text, [0.9, 0.9], ids=[1, 7]), text)
    last = work.propose(*seen(text, [0.9, 0.9], ids=[3, 7]), text)
    calm = TokenEditPolicy().begin(text, TRAITS).propose(*seen(text, [0.9, 0.9], ids=[1, 2]), text)

    assert changed.again
    assert len(last.edit) == 2
    assert not last.again
    assert not calm.again
    assert not calm.progresses


def test_literals_are_not_edited() -> None:
    text = Canvas((1, 2), 2, MASK, literals={0: 4})
    text.window = range(2, 4)

    action = (
        TokenEditPolicy(0.7, 0.0).begin(text, TRAITS).propose(*seen(text, [1, 1], ids=[7, 7]), text)
    )

    assert not len(action.edit)
    assert places(action, text) == [1]


def shifted(text: Canvas, ids: Sequence[int], policy: IndelPolicy) -> list[int]:
    """The answer after one action."""
    action = policy.begin(text, TRAITS).propose(*seen(text, [0.9] * len(ids), ids=ids), text)
    action.perform(text, MASK)
    return [int(token) for token in text.ids[text.first :]]


INDEL = IndelPolicy(keep=5, delete=6, insert=7, write=1.0)


def test_control_tokens_shift_the_window_and_leave_its_length() -> None:
    def written() -> Canvas:
        text = canvas(4)
        text.commit(text.first + np.arange(3), [1, 2, 3])
        return text

    # the open slot is the surest one, and written too, unless it is pushed out
    assert shifted(written(), [5, 6, 5, 4], INDEL) == [1, 3, 4, MASK]
    assert shifted(written(), [5, 7, 3, 4], INDEL) == [1, MASK, 2, 3]
    assert shifted(written(), [4, 2, 5, 4], INDEL) == [4, 2, 3, 4]
    text = written()
    assert shifted(text, [6, 6, 6, 4], INDEL) == [4, MASK, MASK, MASK]
    assert text.open.tolist() == [3, 4, 5]
    assert text.length == 6


def test_an_insert_needs_room_at_the_windows_end() -> None:
    text = canvas(3)
    text.commit(text.first + np.arange(3), [1, 2, 3])
    assert shifted(text, [7, 2, 3], INDEL) == [1, 2, 3]
    ending = canvas(3)
    ending.commit(ending.first + np.arange(3), [1, 2, END])
    assert shifted(ending, [7, 2, END], INDEL) == [MASK, 1, 2]


def test_a_state_seen_before_is_not_edited_again() -> None:
    text = canvas(2)
    text.commit(text.first + np.arange(2), [1, 2])
    work = INDEL.begin(text, TRAITS)
    there = work.propose(*seen(text, [0.9, 0.9], ids=[3, 2]), text)
    there.perform(text, MASK)
    back = work.propose(*seen(text, [0.9, 0.9], ids=[1, 2]), text)
    back.perform(text, MASK)
    again = work.propose(*seen(text, [0.9, 0.9], ids=[3, 2]), text)

    assert there.again
    assert back.again
    assert not again.progresses


def test_control_tokens_are_not_written() -> None:
    text = canvas(3)
    text.commit([text.first], [1])
    work = INDEL.begin(text, TRAITS)
    slots = np.arange(text.first, text.length)
    logits = np.zeros((3, TRAITS.vocabulary), dtype=np.float32)

    allowed = work.adjust(logits, slots, text)

    assert np.isfinite(allowed[0]).all()
    assert np.isneginf(allowed[1:, 5:8]).all()
    assert np.isfinite(allowed[1:, :5]).all()


def uniform(text: Canvas, policy: UniformStatePolicy) -> Callable[..., Action]:
    work = policy.begin(text, TRAITS)

    def step(entropy: Sequence[float], ids: Sequence[int]) -> Action:
        action = work.propose(*seen(text, [0.9] * 3, entropy=entropy, ids=ids), text)
        action.perform(text, MASK)
        text.step += 1
        text.step_in_block += 1
        return action

    return step


def test_uniform_state_accepts_little_entropy_and_opens_the_rest() -> None:
    text = canvas(3)
    step = uniform(text, UniformStatePolicy(bound=0.1))

    first = step([0.05, 0.08, 0.06], [1, 2, 3])

    # sorted: .05, .06, .08; the sums before them are 0, .05, .11
    assert text.ids[text.first :].tolist() == [1, MASK, 3]
    assert text.undecided[text.first :].all()
    assert first.again


def test_uniform_state_ends_when_the_text_stands_still() -> None:
    text = canvas(3)
    step = uniform(text, UniformStatePolicy(calm=0.01, still=1))

    step([0.001] * 3, [1, 2, 3])
    moved = step([0.001] * 3, [1, 2, 4])
    restless = step([0.5] * 3, [1, 2, 4])
    calm = step([0.001] * 3, [1, 2, 4])

    assert not len(moved.commit) + len(restless.commit)
    assert calm.commit.ids.tolist() == [1, 2, 4]
    assert not calm.again


def test_uniform_state_ends_after_its_steps() -> None:
    text = canvas(3)
    step = uniform(text, UniformStatePolicy(steps=2))

    assert not len(step([1.0] * 3, [1, 2, 3]).commit)
    assert step([1.0] * 3, [3, 2, 1]).commit.ids.tolist() == [3, 2, 1]


def test_noise_is_another_for_each_pass_and_slot() -> None:
    traits = ModelTraits(10, None, frozenset({END}), banned=frozenset({0, 1}))
    text = canvas(64)
    work = UniformStatePolicy(bound=0.0).begin(text, traits)
    before = text.ids[text.first :].copy()
    action = work.propose(*seen(text, [0.5] * 64, entropy=[1.0] * 64), text)
    action.perform(text, 0)
    after = text.ids[text.first :]

    assert set(before) | set(after[1:]) == set(range(2, 10))
    assert (before[1:] != after[1:]).mean() > 0.7


def test_the_temperature_falls() -> None:
    text = canvas(1)
    work = UniformStatePolicy(steps=5, first=0.8, last=0.4).begin(text, TRAITS)
    logits = np.ones((1, 10), dtype=np.float32)
    heats: list[NDArray[np.float32]] = []
    for text.step_in_block in range(7):
        heats.append(1 / work.adjust(logits, text.open, text)[0, 0])

    assert heats == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4, 0.4, 0.4])


def with_all(look: Look, p: Sequence[float]) -> Look:
    """All slots are predicted alike: the tokens from 0 on with these probabilities."""
    logp = np.full((len(look[0].slots), 10), -np.inf, dtype=np.float32)
    logp[:, : len(p)] = np.log(p)
    return replace(look[0], logp=logp), look[1]


def test_mixtures_are_of_the_likeliest_tokens() -> None:
    text = canvas(3)
    work = UniformStatePolicy(parts=2).begin(text, TRAITS)

    soft = work.propose(*with_all(seen(text, [0.6] * 3), [0.2, 0.6, 0.2]), text).soft

    assert soft is not None
    assert soft.slots.tolist() == [2, 3, 4]
    assert soft.ids.tolist() == [[1, 0]] * 3
    np.testing.assert_allclose(soft.weights, [[0.75, 0.25]] * 3, rtol=1e-6)


def test_smoothing_rises_while_the_threshold_falls() -> None:
    text = canvas(3)
    policy = SmoothingPolicy(threshold=0.9, fall=0.05, weight=0.1, rise=0.1, most=0.25, parts=1)
    work = policy.begin(text, TRAITS)
    weights = []
    for text.step_in_block in range(4):
        look = with_all(seen(text, [0.96, 0.91, 0.5]), [0.5, 0.5])
        action = work.propose(*look, text)
        assert action.soft is not None
        np.testing.assert_allclose(action.soft.weights.sum(axis=1), 1.0)
        assert action.soft.ids[:, 0].tolist() == [MASK] * len(action.soft.slots)
        weights.append(action.soft.weights[0, 1])
        expected = [[0], [0], [0, 1], [0, 1]][text.step_in_block]
        assert places(action, text) == expected

    assert weights == pytest.approx([0.1, 0.2, 0.25, 0.25])
