"""Policies that look back, edit and wait, on networks: exact caches change nothing for them."""

from __future__ import annotations

import pytest

from tests.decoding.diffusion.network.small import (
    BLOCKS,
    FULL,
    MASK,
    NOISE,
    PROMPT,
    network,
    recording,
)
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import DenoisingRow, denoise_all
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.policies.adaptive import AdaptivePolicy
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.editing import TokenEditPolicy
from weft.decoding.diffusion.policies.history import CreditPolicy, KlassPolicy, SmoothingPolicy
from weft.decoding.diffusion.policies.remasking import RunningConfidencePolicy, WinoPolicy
from weft.decoding.diffusion.policies.uniform_state import UniformStatePolicy
from weft.decoding.diffusion.ports import CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng, SamplingParams

POLICIES: tuple[CommitPolicy, ...] = (
    KlassPolicy(divergence=1.0, history=1),
    CreditPolicy(ThresholdPolicy(0.3)),
    SmoothingPolicy(0.3),
    WinoPolicy(draft=0.2, verify=0.5),
    RunningConfidencePolicy(2),
    TokenEditPolicy(0.3, 0.1, reviews=3),
    UniformStatePolicy(steps=4),
    AdaptivePolicy(risk=1.0, care=0.0, doubt=0.5),
)


def texts(policy: CommitPolicy, traits: ModelTraits, cache: CachePolicy) -> list[DenoisingRow]:
    adapter = NetworkAdapter(network(), traits)
    plugs = DecoderConfig(policy, FixedBlocks(4), cache, FirstTerminator())
    rows = [
        DenoisingRow(
            Canvas(PROMPT[: 3 + n], 10, MASK, row=n),
            plugs,
            traits,
            CounterRng(n),
            SamplingParams(1.0),
        )
        for n in range(3)
    ]
    denoise_all(rows, adapter)
    return rows


@pytest.mark.parametrize("joined", [False, True], ids=["", "joined"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_an_exact_cache_changes_nothing(policy: CommitPolicy, joined: bool) -> None:
    plain = texts(policy, BLOCKS, NoCache())
    cached = texts(policy, BLOCKS, BlockCausalCache(joined=joined))

    for one, other in zip(plain, cached, strict=True):
        assert other.kept.tolist() == one.kept.tolist()
        assert other.counters.order == one.counters.order
        assert other.counters.remasks == one.counters.remasks
        assert other.counters.edits == one.counters.edits


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_rows_are_alike_alone_and_together(policy: CommitPolicy) -> None:
    for n, together in enumerate(texts(policy, FULL, NoCache())):
        adapter = NetworkAdapter(network(), FULL)
        plugs = DecoderConfig(policy, FixedBlocks(4), NoCache(), FirstTerminator())
        canvas = Canvas(PROMPT[: 3 + n], 10, MASK, row=n)
        alone = DenoisingRow(canvas, plugs, FULL, CounterRng(n), SamplingParams(1.0))
        denoise_all([alone], adapter)
        assert alone.kept.tolist() == together.kept.tolist()
        assert alone.counters == together.counters


def test_a_model_of_noise_reads_mixtures_of_what_it_said() -> None:
    """All open slots in every pass but a block's first."""
    adapter = recording(network(), NOISE)
    plugs = DecoderConfig(
        UniformStatePolicy(steps=4, calm=0.0, parts=3), FixedBlocks(4), NoCache(), FirstTerminator()
    )
    row = DenoisingRow(Canvas(PROMPT, 8, 0), plugs, NOISE, CounterRng(0), SamplingParams(0.0))
    denoise_all([row], adapter)

    soft = [query.soft for asked in adapter.passes for query in asked]
    assert [one is None for one in soft[:5]] == [True, False, False, False, True]
    assert soft[1] is not None
    assert soft[1].ids.shape == (4, 3)
    first = [asked[0].canvas for asked in adapter.passes]
    assert all(one is row.canvas for one in first)
