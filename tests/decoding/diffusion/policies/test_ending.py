"""Policies that take back, edit or wait come to an end, whatever a model says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.diffusion.hostile import (
    DELETE,
    END,
    INSERT,
    KEEP,
    MASK,
    NOISE,
    TRAITS,
    Hostile,
)
from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import GREEDY, denoise, denoised
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.adaptive import Adaptive
from weft.decoding.diffusion.policies.credit import Credit
from weft.decoding.diffusion.policies.hierarchy import Hierarchy
from weft.decoding.diffusion.policies.indel import Indel
from weft.decoding.diffusion.policies.klass import Klass
from weft.decoding.diffusion.policies.remdm import Remdm
from weft.decoding.diffusion.policies.running import Running
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculative
from weft.decoding.diffusion.policies.smooth import Smooth
from weft.decoding.diffusion.policies.threshold import Threshold
from weft.decoding.diffusion.policies.token_edit import TokenEdit
from weft.decoding.diffusion.policies.uniform_state import UniformState
from weft.decoding.diffusion.policies.wino import Wino
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.schedules.adablock import AdaBlock
from weft.decoding.diffusion.schedules.daedal import Daedal
from weft.decoding.diffusion.schedules.fixed import Fixed
from weft.decoding.diffusion.schedules.slowfast import SlowFast
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

POLICIES: tuple[CommitPolicy, ...] = (
    Klass(),
    Klass(confidence=0.0, divergence=50.0, history=1, least=3),
    Hierarchy(),
    Hierarchy(high=1.0, low=0.0),
    Credit(Threshold(0.9), weight=100.0),
    Smooth(),
    Wino(),
    Wino(draft=0.0, verify=1.0),
    Running(),
    Running(step=3),
    Remdm(rate=1.0, budget=100),
    Remdm(step=2, rate=1.0, budget=3),
    TokenEdit(0.7, 0.5),
    TokenEdit(0.5, 0.0),
    TokenEdit(0.5, None),
    TokenEdit(0.5, 0.0, reviews=0),
    Indel(KEEP, DELETE, INSERT, 0.0, 0.0),
    Indel(KEEP, DELETE, INSERT, 0.7, 0.5, budget=3, reviews=2),
    UniformState(steps=6),
    UniformState(steps=1),
    UniformState(steps=5, parts=3),
    SelfSpeculative(),
    SelfSpeculative("confidence", rows=2),
    Adaptive(),
    Adaptive(risk=1.0, care=0.0, doubt=1.0, rounds=5),
)
SCHEDULES = (
    Fixed(),
    Fixed(3),
    Fixed(4, aligned=True),
    AdaBlock(frozenset({1, 2, 3, END}), size=4),
    Daedal(start=2, size=4, more=3, tail=2),
    SlowFast(span=5),
)
PROMPT = (1, MASK, 2)


@settings(max_examples=150)
@given(
    hot=st.booleans(),
    schedule=st.sampled_from(SCHEDULES),
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 10**6),
    length=st.integers(1, 9),
    literals=st.sets(st.integers(0, 8), max_size=3),
)
def test_every_text_ends_within_its_bound(
    schedule: Fixed | AdaBlock | Daedal | SlowFast,
    hot: bool,
    policy: CommitPolicy,
    seed: int,
    length: int,
    literals: set[int],
) -> None:
    moves = isinstance(policy, Indel) or isinstance(schedule, Daedal)
    fixed = {} if moves else {slot: 3 for slot in literals if slot < length}
    limit = 15 if isinstance(schedule, Daedal) else 0
    text = Canvas(PROMPT, length, MASK, limit=limit, literals=fixed)
    plugs = Plugs(policy, schedule, Whole(), Contiguous())
    adapter = Hostile(seed)
    row = Denoising(text, plugs, TRAITS, Keyed(seed), Shaping(1.0) if hot else GREEDY)
    # windows of one slot are the worst, and each of them may be bounded by itself
    most = 4 * sum(policy.most_forwards(slots) + 2 for slots in range(1, 16))
    for _ in range(most):
        if row.over:
            break
        denoise([row], adapter)

    assert row.over
    assert text.ids[: len(PROMPT)].tolist() == list(PROMPT)
    assert MASK not in row.kept
    assert not text.undecided[: row.end].any()
    assert all(text.ids[text.first + slot] == 3 for slot in fixed if slot < row.end - text.first)
    if isinstance(policy, Indel):
        assert not {KEEP, DELETE, INSERT} & set(row.kept.tolist())
    counters = row.counters
    assert counters.kept == len(row.kept)
    if not isinstance(policy, Indel) and row.finish == "length":
        assert counters.commits - counters.remasks == len(text.ids) - text.first - len(fixed)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 9))
def test_noise_is_no_token_that_is_banned_and_is_all_replaced(seed: int, steps: int) -> None:
    text = Canvas(PROMPT, 6, 0)
    plugs = Plugs(UniformState(steps=steps), Fixed(), Whole(), Contiguous())
    row = Denoising(text, plugs, NOISE, Keyed(seed), GREEDY)
    denoised([row], Hostile(seed, traits=NOISE))

    assert not text.undecided[: row.end].any()
    assert row.counters.forwards <= steps


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_rows_do_not_depend_on_their_batch_mates(seed: int) -> None:
    """Each policy is a batch mate of all others, and alone."""

    def made() -> list[Denoising]:
        return [
            Denoising(
                Canvas(PROMPT, 6, MASK, row=at),
                Plugs(policy, Fixed(4), Whole(), Contiguous()),
                TRAITS,
                Keyed(seed),
                Shaping(1.0),
            )
            for at, policy in enumerate(POLICIES)
        ]

    together = made()
    denoised(together, Hostile(seed))
    for alone, other in zip(made(), together, strict=True):
        denoised([alone], Hostile(seed))
        np.testing.assert_array_equal(alone.kept, other.kept)
        assert alone.counters == other.counters
