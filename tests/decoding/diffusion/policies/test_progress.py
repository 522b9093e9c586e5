"""Every policy goes on, whatever a model says, and writes nothing but what was drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.policies.pass_statistics import MASK, PROMPT, TRAITS
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.confidence import (
    EntropyBoundPolicy,
    EntropyThresholdPolicy,
    FactorPolicy,
    ThresholdPolicy,
)
from weft.decoding.diffusion.policies.fixed_pace import (
    AncestralPolicy,
    DilatedPolicy,
    EvenSteps,
    EveryStep,
    FadingPace,
    FixedPacePolicy,
)
from weft.decoding.diffusion.ports import CommitPolicy
from weft.decoding.diffusion.stats import SampledTokens, Stats, compute_stats, sample_tokens
from weft.decoding.sampling import CounterRng, SamplingParams

POLICIES: tuple[CommitPolicy, ...] = (
    *(
        FixedPacePolicy(EveryStep(2), score)
        for score in ("confidence", "drawn", "margin", "entropy")
    ),
    FixedPacePolicy(EveryStep(1), "leftmost"),
    FixedPacePolicy(EveryStep(3), "random"),
    FixedPacePolicy(EvenSteps(3), "confidence", ends_last=True),
    FixedPacePolicy(FadingPace(5), "entropy", spread=0.5),
    FixedPacePolicy(FadingPace(), "margin", spread=1e-3),
    AncestralPolicy(4),
    AncestralPolicy(),
    ThresholdPolicy(0.9),
    ThresholdPolicy(1.0, "confidence"),
    ThresholdPolicy(0.0),
    ThresholdPolicy(0.95, pace=FadingPace(4, least=1)),
    ThresholdPolicy(0.9, pace=EvenSteps(3), filled=True),
    FactorPolicy(1.0),
    FactorPolicy(50.0, "confidence"),
    EntropyThresholdPolicy(0.0),
    EntropyThresholdPolicy(0.5),
    EntropyBoundPolicy(0.0),
    EntropyBoundPolicy(2.0),
    DilatedPolicy(),
    DilatedPolicy(5),
)
# flat, certain, tied, forbidden, and near the ends of float32
LEVELS = st.sampled_from([0.0, 1.0, -1.0, 30.0, -30.0, 3e4, -3e4, -np.inf])
LOGITS = st.lists(st.lists(LEVELS, min_size=10, max_size=10), min_size=1, max_size=9)


def looked(
    text: Canvas, levels: list[list[float]], seed: int, hot: bool
) -> tuple[Stats, SampledTokens]:
    slots = text.first + np.arange(len(levels))
    logits: NDArray[np.float32] = np.array(levels, dtype=np.float32)
    logits[:, 0] = np.maximum(logits[:, 0], -3e4)  # one token is always possible
    logits[:, MASK] = -np.inf
    shaping = SamplingParams(1.0 if hot else 0.0)
    stats = compute_stats(text, slots, logits, TRAITS.end_ids)
    return stats, sample_tokens(text, slots, logits, shaping, CounterRng(seed), fresh=True)


@given(
    policy=st.sampled_from(POLICIES),
    levels=LOGITS,
    seed=st.integers(0, 99),
    hot=st.booleans(),
    literals=st.sets(st.integers(0, 8), max_size=4),
)
def test_every_step_writes_open_slots_with_what_was_drawn(
    policy: CommitPolicy, levels: list[list[float]], seed: int, hot: bool, literals: set[int]
) -> None:
    fixed = {slot: 3 for slot in literals if slot < len(levels)}
    text = Canvas(PROMPT, len(levels), MASK, literals=fixed)
    text.window = range(text.first, text.length)
    bound = policy.most_forwards(len(text.open))
    at_work = policy.begin(text, TRAITS)
    while len(text.open):
        stats, drawn = looked(text, levels, seed, hot)
        action = at_work.propose(stats, drawn, text)
        assert len(action.commit) > 0
        assert not len(action.edit) + len(action.remask) + len(action.renoise)
        rows = stats.rows(action.commit.slots)
        assert stats.open[rows].all()
        assert len(set(rows.tolist())) == len(rows)
        np.testing.assert_array_equal(action.commit.ids, drawn.ids[rows])
        action.perform(text, MASK)
        text.step += 1
        text.step_in_block += 1
    assert text.step <= bound
    assert all(text.ids[text.first + slot] == 3 for slot in fixed)
    assert MASK not in text.ids[text.first :]
