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
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise, denoise_all
from weft.decoding.diffusion.policies.adaptive import AdaptivePolicy
from weft.decoding.diffusion.policies.confidence import HierarchyPolicy, ThresholdPolicy
from weft.decoding.diffusion.policies.editing import IndelPolicy, TokenEditPolicy
from weft.decoding.diffusion.policies.history import CreditPolicy, KlassPolicy, SmoothingPolicy
from weft.decoding.diffusion.policies.remasking import (
    RemdmPolicy,
    RunningConfidencePolicy,
    WinoPolicy,
)
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculativePolicy
from weft.decoding.diffusion.policies.uniform_state import UniformStatePolicy
from weft.decoding.diffusion.ports import CommitPolicy, DecoderConfig
from weft.decoding.diffusion.schedules import AdaBlock, Daedal, FixedBlocks, SlowFast
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng, SamplingParams

POLICIES: tuple[CommitPolicy, ...] = (
    KlassPolicy(),
    KlassPolicy(confidence=0.0, divergence=50.0, history=1, least=3),
    HierarchyPolicy(),
    HierarchyPolicy(high=1.0, low=0.0),
    CreditPolicy(ThresholdPolicy(0.9), weight=100.0),
    SmoothingPolicy(),
    WinoPolicy(),
    WinoPolicy(draft=0.0, verify=1.0),
    RunningConfidencePolicy(),
    RunningConfidencePolicy(count=3),
    RemdmPolicy(rate=1.0, budget=100),
    RemdmPolicy(count=2, rate=1.0, budget=3),
    TokenEditPolicy(0.7, 0.5),
    TokenEditPolicy(0.5, 0.0),
    TokenEditPolicy(0.5, None),
    TokenEditPolicy(0.5, 0.0, reviews=0),
    IndelPolicy(KEEP, DELETE, INSERT, 0.0, 0.0),
    IndelPolicy(KEEP, DELETE, INSERT, 0.7, 0.5, budget=3, reviews=2),
    UniformStatePolicy(steps=6),
    UniformStatePolicy(steps=1),
    UniformStatePolicy(steps=5, parts=3),
    SelfSpeculativePolicy(),
    SelfSpeculativePolicy("confidence", rows=2),
    AdaptivePolicy(),
    AdaptivePolicy(risk=1.0, care=0.0, doubt=1.0, rounds=5),
)
SCHEDULES = (
    FixedBlocks(),
    FixedBlocks(3),
    FixedBlocks(4, aligned=True),
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
    schedule: FixedBlocks | AdaBlock | Daedal | SlowFast,
    hot: bool,
    policy: CommitPolicy,
    seed: int,
    length: int,
    literals: set[int],
) -> None:
    moves = isinstance(policy, IndelPolicy) or isinstance(schedule, Daedal)
    fixed = {} if moves else {slot: 3 for slot in literals if slot < length}
    limit = 15 if isinstance(schedule, Daedal) else 0
    text = Canvas(PROMPT, length, MASK, limit=limit, literals=fixed)
    plugs = DecoderConfig(policy, schedule, NoCache(), FirstTerminator())
    adapter = Hostile(seed)
    row = DenoisingRow(
        text, plugs, TRAITS, CounterRng(seed), SamplingParams(1.0) if hot else GREEDY
    )
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
    if isinstance(policy, IndelPolicy):
        assert not {KEEP, DELETE, INSERT} & set(row.kept.tolist())
    counters = row.counters
    assert counters.kept == len(row.kept)
    if not isinstance(policy, IndelPolicy) and row.finish == "length":
        assert counters.commits - counters.remasks == len(text.ids) - text.first - len(fixed)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 9))
def test_noise_is_no_token_that_is_banned_and_is_all_replaced(seed: int, steps: int) -> None:
    text = Canvas(PROMPT, 6, 0)
    plugs = DecoderConfig(
        UniformStatePolicy(steps=steps), FixedBlocks(), NoCache(), FirstTerminator()
    )
    row = DenoisingRow(text, plugs, NOISE, CounterRng(seed), GREEDY)
    denoise_all([row], Hostile(seed, traits=NOISE))

    assert not text.undecided[: row.end].any()
    assert row.counters.forwards <= steps


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_rows_do_not_depend_on_their_batch_mates(seed: int) -> None:
    """Each policy is a batch mate of all others, and alone."""

    def made() -> list[DenoisingRow]:
        return [
            DenoisingRow(
                Canvas(PROMPT, 6, MASK, row=at),
                DecoderConfig(policy, FixedBlocks(4), NoCache(), FirstTerminator()),
                TRAITS,
                CounterRng(seed),
                SamplingParams(1.0),
            )
            for at, policy in enumerate(POLICIES)
        ]

    together = made()
    denoise_all(together, Hostile(seed))
    for alone, other in zip(made(), together, strict=True):
        denoise_all([alone], Hostile(seed))
        np.testing.assert_array_equal(alone.kept, other.kept)
        assert alone.counters == other.counters
