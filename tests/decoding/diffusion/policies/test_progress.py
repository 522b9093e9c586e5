"""Every policy goes on, whatever a model says, and writes nothing but what was drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.policies.looks import MASK, PROMPT, TRAITS
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ancestral import Ancestral
from weft.decoding.diffusion.policies.dilated import Dilated
from weft.decoding.diffusion.policies.entropy_bound import EntropyBound
from weft.decoding.diffusion.policies.entropy_threshold import EntropyThreshold
from weft.decoding.diffusion.policies.factor import Factor
from weft.decoding.diffusion.policies.fixed import Fixed
from weft.decoding.diffusion.policies.pace import Every, Fading, Split
from weft.decoding.diffusion.policies.threshold import Threshold
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.stats import Drawn, Stats, drawn_from, stats_of
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

POLICIES: tuple[CommitPolicy, ...] = (
    *(Fixed(Every(2), score) for score in ("confidence", "drawn", "margin", "entropy")),
    Fixed(Every(1), "leftmost"),
    Fixed(Every(3), "random"),
    Fixed(Split(3), "confidence", ends_last=True),
    Fixed(Fading(5), "entropy", spread=0.5),
    Fixed(Fading(), "margin", spread=1e-3),
    Ancestral(4),
    Ancestral(),
    Threshold(0.9),
    Threshold(1.0, "confidence"),
    Threshold(0.0),
    Threshold(0.95, pace=Fading(4, least=1)),
    Threshold(0.9, pace=Split(3), filled=True),
    Factor(1.0),
    Factor(50.0, "confidence"),
    EntropyThreshold(0.0),
    EntropyThreshold(0.5),
    EntropyBound(0.0),
    EntropyBound(2.0),
    Dilated(),
    Dilated(5),
)
# flat, certain, tied, forbidden, and near the ends of float32
LEVELS = st.sampled_from([0.0, 1.0, -1.0, 30.0, -30.0, 3e4, -3e4, -np.inf])
LOGITS = st.lists(st.lists(LEVELS, min_size=10, max_size=10), min_size=1, max_size=9)


def looked(text: Canvas, levels: list[list[float]], seed: int, hot: bool) -> tuple[Stats, Drawn]:
    slots = text.first + np.arange(len(levels))
    logits: NDArray[np.float32] = np.array(levels, dtype=np.float32)
    logits[:, 0] = np.maximum(logits[:, 0], -3e4)  # one token is always possible
    logits[:, MASK] = -np.inf
    shaping = Shaping(1.0 if hot else 0.0)
    stats = stats_of(text, slots, logits, TRAITS.end_ids)
    return stats, drawn_from(text, slots, logits, shaping, Keyed(seed), fresh=True)


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
