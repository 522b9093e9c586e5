"""Exact caches on networks: the predictions, and the keys that are left, are those without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from evals.diffusion.cache_error import Gauge
from tests.decoding.diffusion.caches.random_edits import Restless
from tests.decoding.diffusion.network.small import (
    BLOCKS,
    ENCODER,
    FULL,
    MASK,
    PROMPT,
    SHIFTED,
    SHIFTED_BLOCKS,
    Recording,
    llama,
    network,
    part,
    qwen,
    recording,
    text,
)
from tests.decoding.diffusion.toy import AtEnd
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import (
    DelayedCache,
    IntervalCache,
    PrefixCache,
    VicinityCache,
)
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_text
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.ports import CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng

ALWAYS: dict[str, CachePolicy] = {
    "prefix": PrefixCache(1),
    "dual": PrefixCache(1, suffix=False),
    "vicinity": VicinityCache(refresh=1),
    "delayed": DelayedCache(1),
    "interval": IntervalCache(1),
}
BLOCKWISE: dict[str, CachePolicy] = {
    "prefix": PrefixCache(),
    "dual": PrefixCache(suffix=False),
    "apart": BlockCausalCache(),
    "joined": BlockCausalCache(joined=True),
}
SURE = ThresholdPolicy(0.2)


@pytest.fixture(scope="module", params=["llama", "qwen"])
def net(request: pytest.FixtureRequest) -> Network:
    return network(llama() if request.param == "llama" else qwen())


def plugs(policy: CachePolicy, commit: CommitPolicy = SURE, keep: bool = False) -> DecoderConfig:
    return DecoderConfig(commit, FixedBlocks(4), policy, AtEnd(), keep=keep)


def canvas(row: int = 0, first: int = 6, length: int = 13) -> Canvas:
    return Canvas(text(first, row), length, MASK, row=row)


def run(net: Network, traits: ModelTraits, made: DecoderConfig) -> tuple[DenoisingRow, Recording]:
    adapter = recording(net, traits)
    return denoise_text(adapter, canvas(), made, CounterRng(0)), adapter


def predictions(adapter: Recording) -> list[NDArray[np.float32]]:
    """Of the passes that predict."""
    return [answer for answers in adapter.answers for answer in answers if len(answer)]


@pytest.mark.parametrize("traits", [FULL, SHIFTED], ids=["full", "shifted"])
@pytest.mark.parametrize("name", ALWAYS)
def test_a_cache_that_is_always_refreshed_is_none(
    net: Network, traits: ModelTraits, name: str
) -> None:
    row, adapter = run(net, traits, plugs(NoCache()))
    same, other = run(net, traits, plugs(ALWAYS[name]))
    assert same.kept.tolist() == row.kept.tolist()
    for one, two in zip(predictions(adapter), predictions(other), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5)


@pytest.mark.parametrize("traits", [BLOCKS, SHIFTED_BLOCKS], ids=["plain", "shifted"])
@pytest.mark.parametrize("name", BLOCKWISE)
def test_all_caches_of_a_block_causal_model_are_exact(
    net: Network, traits: ModelTraits, name: str
) -> None:
    row, adapter = run(net, traits, plugs(NoCache()))
    same, other = run(net, traits, plugs(BLOCKWISE[name]))
    assert same.kept.tolist() == row.kept.tolist()
    found = predictions(other)
    far = [
        np.abs(one[:, :MASK] - two[:, :MASK]).max()
        for one, two in zip(predictions(adapter), found, strict=True)
    ]
    assert max(far) < 1e-4
    assert same.counters.tokens < row.counters.tokens
    stored = same.counters.passes["persist"]
    assert (stored > 0) == (name == "apart")
    assert same.counters.forwards == row.counters.forwards + stored


def test_a_pass_that_stores_a_block_writes_on(net: Network) -> None:
    predicting = BlockCausalCache(predicts=True)
    gauge = Gauge(NetworkAdapter(net, SHIFTED_BLOCKS))
    row = denoise_text(gauge, canvas(), plugs(predicting), CounterRng(0))
    assert gauge.error.largest < 1e-4
    assert gauge.error.predictions > 13  # those of the passes that store are among them
    assert row.counters.passes["persist"] == len(range(8, 19, 4))
    # of every later block, the first slot was written before a pass of its own
    one_by_one = ThresholdPolicy(1.0)
    adapter = NetworkAdapter(net, SHIFTED_BLOCKS)
    slow = denoise_text(adapter, canvas(), plugs(predicting, one_by_one), CounterRng(0))
    assert slow.counters.forwards == 13


@dataclass
class Twin:
    """An adapter over a network of float64: after each pass, what the row holds is compared with
    what a pass over all would leave in another row.
    """

    adapter: NetworkAdapter
    net: Network
    far: float = 0.0

    @property
    def traits(self) -> ModelTraits:
        return self.adapter.traits

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        answers = self.adapter.forward(queries)
        (query,) = queries
        reach = min(query.reach, int(query.feed[-1]) + 1)
        all_ = np.arange(reach)
        copy = Canvas(query.canvas.ids, 0, MASK, row=7)
        copy.window = query.canvas.window
        nothing = np.empty(0, dtype=np.int64)
        self.adapter.forget(7)
        self.adapter.forward([Query(copy, all_, nothing, reach, kind=query.kind)])
        for slot in range(reach):
            ours, true = self.net.column(0, slot), self.net.column(7, slot)
            self.far = max(self.far, float((ours - true).abs().max()))
        return answers

    def forget(self, row: int) -> None:
        self.adapter.forget(row)


@pytest.mark.parametrize(
    "traits", [BLOCKS, SHIFTED_BLOCKS, ENCODER], ids=["plain", "shifted", "encoder"]
)
@pytest.mark.parametrize(
    "policy", [BlockCausalCache(), BlockCausalCache(joined=True)], ids=["apart", "joined"]
)
@pytest.mark.parametrize(
    "commit", [SURE, Restless(3), Restless(5, moves=True)], ids=["sure", "edits", "moves"]
)
def test_every_key_is_the_one_of_a_pass_over_all(
    traits: ModelTraits, policy: CachePolicy, commit: CommitPolicy
) -> None:
    made = network(dtype=torch.float64)
    twin = Twin(NetworkAdapter(made, traits), made)
    denoise_text(twin, canvas(), plugs(policy, commit, keep=True), CounterRng(0))
    assert twin.far < 1e-12


@pytest.mark.parametrize(
    "traits", [BLOCKS, SHIFTED_BLOCKS, ENCODER], ids=["plain", "shifted", "encoder"]
)
def test_what_is_left_is_a_prefill_of_the_text(traits: ModelTraits) -> None:
    made = network(dtype=torch.float64)
    adapter = NetworkAdapter(made, traits)
    row = denoise_text(
        adapter, canvas(length=14), plugs(BlockCausalCache(), keep=True), CounterRng(0)
    )
    assert row.canvas.length % 4 == 0
    tokens = row.canvas.ids
    fresh = Canvas(tokens, 0, MASK, row=1)
    fresh.window = range(len(tokens), len(tokens))
    all_ = np.arange(len(tokens))
    adapter.forward([Query(fresh, all_, all_[:0], len(tokens), kind="persist")])
    end = len(tokens) if not row.canvas.undecided.any() else row.canvas.decided_to // 4 * 4
    far = [(made.column(0, s) - made.column(1, s)).abs().max() for s in range(end)]
    assert end >= 8
    assert float(max(far)) < 1e-12


def test_the_gauge_changes_nothing_and_sees_old_keys(net: Network) -> None:
    row, _ = run(net, FULL, plugs(PrefixCache(suffix=False)))
    gauge = Gauge(NetworkAdapter(net, FULL))
    same = denoise_text(gauge, canvas(), plugs(PrefixCache(suffix=False)), CounterRng(0))
    assert same.kept.tolist() == row.kept.tolist()
    assert same.counters.forwards == row.counters.forwards
    assert gauge.error.largest > 0.01
    assert gauge.error.by_pass[0] < 1e-4  # a block begins with a pass over all
    assert 0 < gauge.error.flipped < 1
    none = Gauge(NetworkAdapter(net, FULL))
    denoise_text(none, canvas(), plugs(NoCache()), CounterRng(0))
    assert none.error.largest < 1e-4
    assert none.error.flips == 0
    by_hand = NetworkAdapter(net, FULL)
    one = Canvas(PROMPT, 4, MASK)
    one.window = range(5, 9)
    whole = Query(one, np.arange(9), one.open, 9)
    old = by_hand.forward([whole])
    one.commit([5], [3])
    gauged = Gauge(by_hand)
    (stale,) = gauged.forward([part(one, [6, 7, 8], [6, 7, 8])])
    (true,) = by_hand.forward([Query(one, np.arange(9), one.open, 9)])
    assert len(old[0]) == 4
    far = np.abs(stale[:, :MASK] - true[:, :MASK]).max()
    assert gauged.error.largest == pytest.approx(far, abs=1e-4)
