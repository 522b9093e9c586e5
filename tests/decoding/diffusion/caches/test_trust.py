"""Which keys a cache trusts, followed slot by slot without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.decoding.diffusion.caches.random_edits import Restless
from tests.decoding.diffusion.toy import MASK, TRAITS, AtEnd
from weft.core.errors import CapabilityError
from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import (
    DelayedCache,
    FreeCache,
    IntervalCache,
    PrefixCache,
    VicinityCache,
)
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import denoise_text
from weft.decoding.diffusion.ports import CachePolicy, DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.sampling import CounterRng

BLOCKS = ModelTraits(10, MASK, frozenset({8}), attention="block_causal", block=4)
SHIFTED = ModelTraits(10, MASK, frozenset({8}), attention="block_causal", block=4, shifted=True)
ENCODER = ModelTraits(10, MASK, frozenset({8}), attention="causal_encoder")
ANYWHERE: dict[str, CachePolicy] = {
    "whole": NoCache(),
    "prefix": PrefixCache(),
    "prefix, refreshed": PrefixCache(3),
    "dual": PrefixCache(suffix=False),
    "freecache": FreeCache(),
    "freecache by token": FreeCache(blockwise=False, behind=2, ahead=3),
    "delayed": DelayedCache(5),
    "delayed for ever": DelayedCache(None),
    "interval": IntervalCache(9, 3, 0.5),
    "vicinity": VicinityCache(2, 2),
}
BLOCKWISE: dict[str, CachePolicy] = {
    "apart": BlockCausalCache(),
    "joined": BlockCausalCache(joined=True),
    "within": BlockCausalCache(within=True),
}
ALL = [
    *(
        (name, policy, traits)
        for traits in (TRAITS, BLOCKS, ENCODER)
        for name, policy in ANYWHERE.items()
    ),
    *((name, policy, traits) for traits in (BLOCKS, ENCODER) for name, policy in BLOCKWISE.items()),
    ("predicting", BlockCausalCache(predicts=True), SHIFTED),
]


@dataclass
class Following:
    """An adapter that knows what every slot was read as, and minds keys of other tokens."""

    traits: ModelTraits
    cached: dict[int, int] = field(default_factory=dict)
    passes: list[Query] = field(default_factory=list)

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        return [self._read(query) for query in queries]

    def forget(self, row: int) -> None:
        self.cached.clear()

    def _read(self, query: Query) -> NDArray[np.float32]:
        ids = query.canvas.ids
        assert query.feed.tolist() == sorted(set(query.feed.tolist()))
        assert query.feed[-1] < query.reach <= len(ids)
        self.cached.update(zip(query.feed.tolist(), query.read.tolist(), strict=True))
        last = int(query.feed[-1])
        end = query.reach
        if self.traits.block:
            end = min(end, (last // self.traits.block + 1) * self.traits.block)
        for slot in range(end):
            assert self.cached.get(slot) == ids[slot], f"slot {slot} is trusted as it was"
        sources = query.wanted - self.traits.shifted
        assert np.isin(query.wanted, query.feed).all() or query.kind == "persist"
        self.passes.append(query)
        logits = np.zeros((len(query.wanted), self.traits.vocabulary), dtype=np.float32)
        logits[np.arange(len(sources)), (query.wanted * 7 + ids[sources]) % 8] = 3
        logits[:, MASK] = -np.inf
        return logits


def plugs(
    policy: CachePolicy, commit: Restless, size: int = 4, keep: bool = False
) -> DecoderConfig:
    return DecoderConfig(commit, FixedBlocks(size), policy, AtEnd(), keep=keep)


@pytest.mark.parametrize(("name", "policy", "traits"), ALL)
@settings(max_examples=10, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 17),
    st.integers(1, 6),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
)
def test_no_keys_of_another_token_are_seen(
    name: str,
    policy: CachePolicy,
    traits: ModelTraits,
    first: int,
    length: int,
    size: int,
    seed: int,
    moves: bool,
    keep: bool,
) -> None:
    prompt = np.random.default_rng(seed).integers(0, 8, first).tolist()
    canvas = Canvas(prompt, length, MASK, limit=first + length + 6)
    adapter = Following(traits)
    row = denoise_text(
        adapter, canvas, plugs(policy, Restless(seed, moves), size, keep), CounterRng(seed)
    )
    assert row.over


def feeds(policy: CachePolicy, traits: ModelTraits = TRAITS, prompt: int = 3) -> list[list[int]]:
    """The slots that each pass reads: one is written in each, from the left, in blocks of 4."""
    canvas = Canvas([1] * prompt, 8, MASK)
    canvas.window = range(prompt, prompt + 4)
    caching = policy.begin(canvas, traits)
    found = []
    for step in range(8):
        feed = caching.plan(canvas)
        found.append(feed.slots.tolist())
        action = Action(commit=SlotTokens.of([prompt + step], [step]))
        action.perform(canvas, MASK)
        caching.note(canvas, action)
        canvas.step += 1
        canvas.step_in_block += 1
        if not len(canvas.open):
            following = range(prompt + 4, prompt + 8)
            stored = caching.persist(canvas, following) if step == 3 else None
            if stored is not None:
                found.append([*stored.slots.tolist(), -1])
            canvas.window, canvas.block, canvas.step_in_block = following, 1, 0
    return found


def spans(found: list[list[int]]) -> list[str]:
    """Runs of slots, readable."""
    lines = []
    for slots in found:
        mark = "stored " if slots[-1] == -1 else ""
        kept = [slot for slot in slots if slot >= 0]
        cuts = [n for n in range(1, len(kept)) if kept[n] != kept[n - 1] + 1]
        runs = np.split(kept, cuts)
        lines.append(mark + " ".join(f"{run[0]}-{run[-1]}" for run in runs))
    return lines


def test_prefix_reads_all_once_in_a_block() -> None:
    block = ["0-10", "3-10", "3-10", "3-10"]
    assert spans(feeds(PrefixCache())) == [*block, "0-10", "7-10", "7-10", "7-10"]
    assert spans(feeds(PrefixCache(2))) == ["0-10", "3-10"] * 2 + ["0-10", "7-10"] * 2


def test_dual_reads_the_block_alone() -> None:
    found = spans(feeds(PrefixCache(suffix=False)))
    assert found == ["0-10", "3-6", "3-6", "3-6", "0-10", "7-10", "7-10", "7-10"]


def test_freecache_never_reads_what_is_finished() -> None:
    found = spans(feeds(FreeCache()))
    # the last token of the block is read once more: it was a mask when it was read
    assert found == ["0-10", *["3-10"] * 3, "6-10", *["7-10"] * 3]
    by_token = spans(feeds(FreeCache(blockwise=False, ahead=1)))
    assert by_token[:4] == ["0-10", "3-7", "3-7", "3-7"]  # the window is read whole in any case
    behind = spans(feeds(FreeCache(behind=2)))
    assert behind == ["0-10", *["1-10"] * 3, "4-10", *["5-10"] * 3]


def test_delayed_reads_a_token_once_after_it_is_written() -> None:
    found = spans(feeds(DelayedCache(None)))
    assert found[:5] == ["0-10", "3-10", "3-10", "3-10", "6-10"]
    assert spans(feeds(DelayedCache(2)))[::2] == ["0-10"] * 4


def test_vicinity_reads_the_neighbours() -> None:
    found = spans(feeds(VicinityCache(1, warm_up=2)))
    assert found == ["0-10", "0-10", "2-7", "2-7", "0-10", "6-10", "6-10", "6-10"]


def test_interval_reads_the_prompt_seldom() -> None:
    found = spans(feeds(IntervalCache(6, 2, 0.0)))
    assert found == ["0-10", "3-6", "3-10", "3-6", "3-10", "7-10", "0-10", "7-10"]


def test_interval_leaves_a_share_to_the_adapter() -> None:
    canvas = Canvas([1] * 3, 8, MASK)
    canvas.window = range(3, 7)
    caching = IntervalCache(6, 6, 0.5).begin(canvas, TRAITS)
    assert caching.plan(canvas).choice is None
    canvas.step = 1
    choice = caching.plan(canvas).choice
    assert choice is not None
    assert (choice.slots.tolist(), choice.count) == ([7, 8, 9, 10], 2)


def test_a_finished_block_is_stored() -> None:
    apart = spans(feeds(BlockCausalCache(), BLOCKS, 4))
    block = ["0-7", "4-7", "4-7", "4-7"]
    assert apart == [*block, "stored 4-7", "8-11", "8-11", "8-11", "8-11"]
    joined = spans(feeds(BlockCausalCache(joined=True), BLOCKS, 4))
    assert joined == [*block, "4-11", "8-11", "8-11", "8-11"]


def test_a_block_that_the_prompt_began_is_read_from_its_start() -> None:
    found = spans(feeds(BlockCausalCache(joined=True), BLOCKS, 6))
    # windows of four slots that end in the midst of a block
    assert found == ["0-11", *["4-11"] * 3, "4-13", *["8-13"] * 3]


def test_a_window_is_read_with_the_slots_of_its_block_before_it() -> None:
    assert spans(feeds(DelayedCache(None), BLOCKS, 6))[1] == "4-11"
    assert spans(feeds(FreeCache(blockwise=False), BLOCKS, 6))[1] == "4-11"
    assert spans(feeds(VicinityCache(0, 1), BLOCKS, 6))[1] == "4-9"


def test_a_block_of_which_the_first_slot_is_written_is_trusted() -> None:
    canvas = Canvas([1] * 4, 4, MASK)
    canvas.window = range(4, 6)
    caching = BlockCausalCache(within=True).begin(canvas, BLOCKS)
    assert caching.plan(canvas).slots.tolist() == list(range(8))
    action = Action(commit=SlotTokens.of([4], [1]))
    action.perform(canvas, MASK)
    caching.note(canvas, action)
    assert caching.plan(canvas).slots.tolist() == [4, 5]
    canvas.window = range(6, 8)
    assert caching.plan(canvas).slots.tolist() == [4, 5, 6, 7]


def test_a_model_that_sees_all_has_no_finished_blocks() -> None:
    with pytest.raises(CapabilityError, match="see each other"):
        BlockCausalCache().begin(Canvas([1], 3, MASK), TRAITS)
    with pytest.raises(CapabilityError, match="shift"):
        BlockCausalCache(predicts=True).begin(Canvas([1], 3, MASK), BLOCKS)


def test_noise_that_becomes_a_token_is_read_again() -> None:
    """Its id may be the same: it may have been read as a mixture."""
    canvas = Canvas([1, 2], 3, 5)
    canvas.window = range(2, 5)
    caching = FreeCache(blockwise=False).begin(canvas, ENCODER)
    caching.plan(canvas)
    action = Action(commit=SlotTokens.of([2, 3], [5, 5]))
    action.perform(canvas, 5)
    caching.note(canvas, action)
    canvas.window = range(4, 5)
    assert caching.plan(canvas).slots.tolist() == [2, 3, 4]
    assert caching.plan(canvas).slots.tolist() == [4]


def test_settings_that_cannot_be() -> None:
    for made in (
        lambda: PrefixCache(0),
        lambda: VicinityCache(-1),
        lambda: VicinityCache(warm_up=0),
        lambda: DelayedCache(0),
        lambda: FreeCache(behind=-1),
        lambda: IntervalCache(0),
        lambda: IntervalCache(share=1.5),
        lambda: BlockCausalCache(joined=True, predicts=True),
    ):
        with pytest.raises(ValueError, match=r"."):
            made()


def test_which_caches_change_predictions() -> None:
    exact = [
        NoCache(),
        PrefixCache(1),
        VicinityCache(refresh=1),
        DelayedCache(1),
        IntervalCache(1),
        BlockCausalCache(),
    ]
    assert all(policy.exact for policy in exact)
    others = [
        PrefixCache(),
        VicinityCache(),
        DelayedCache(),
        FreeCache(),
        IntervalCache(),
        BlockCausalCache(within=True),
    ]
    assert not any(policy.exact for policy in others)
