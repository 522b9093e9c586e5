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
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import CachePolicy
from weft.decoding.diffusion.caches.block_causal import BlockCausal
from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import Denoising
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.network_adapter import NetworkAdapter
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.adaptive import Adaptive
from weft.decoding.diffusion.policies.credit import Credit
from weft.decoding.diffusion.policies.klass import Klass
from weft.decoding.diffusion.policies.running import Running
from weft.decoding.diffusion.policies.smooth import Smooth
from weft.decoding.diffusion.policies.threshold import Threshold
from weft.decoding.diffusion.policies.token_edit import TokenEdit
from weft.decoding.diffusion.policies.uniform_state import UniformState
from weft.decoding.diffusion.policies.wino import Wino
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.schedules.fixed import Fixed
from weft.decoding.diffusion.stops.contiguous import Contiguous
from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

POLICIES: tuple[CommitPolicy, ...] = (
    Klass(divergence=1.0, history=1),
    Credit(Threshold(0.3)),
    Smooth(0.3),
    Wino(draft=0.2, verify=0.5),
    Running(2),
    TokenEdit(0.3, 0.1, reviews=3),
    UniformState(steps=4),
    Adaptive(risk=1.0, care=0.0, doubt=0.5),
)


def texts(policy: CommitPolicy, traits: Traits, cache: CachePolicy) -> list[Denoising]:
    adapter = NetworkAdapter(network(), traits)
    plugs = Plugs(policy, Fixed(4), cache, Contiguous())
    rows = [
        Denoising(Canvas(PROMPT[: 3 + n], 10, MASK, row=n), plugs, traits, Keyed(n), Shaping(1.0))
        for n in range(3)
    ]
    denoised(rows, adapter)
    return rows


@pytest.mark.parametrize("joined", [False, True], ids=["", "joined"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_an_exact_cache_changes_nothing(policy: CommitPolicy, joined: bool) -> None:
    plain = texts(policy, BLOCKS, Whole())
    cached = texts(policy, BLOCKS, BlockCausal(joined=joined))

    for one, other in zip(plain, cached, strict=True):
        assert other.kept.tolist() == one.kept.tolist()
        assert other.counters.order == one.counters.order
        assert other.counters.remasks == one.counters.remasks
        assert other.counters.edits == one.counters.edits


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_rows_are_alike_alone_and_together(policy: CommitPolicy) -> None:
    for n, together in enumerate(texts(policy, FULL, Whole())):
        adapter = NetworkAdapter(network(), FULL)
        plugs = Plugs(policy, Fixed(4), Whole(), Contiguous())
        canvas = Canvas(PROMPT[: 3 + n], 10, MASK, row=n)
        alone = Denoising(canvas, plugs, FULL, Keyed(n), Shaping(1.0))
        denoised([alone], adapter)
        assert alone.kept.tolist() == together.kept.tolist()
        assert alone.counters == together.counters


def test_a_model_of_noise_reads_mixtures_of_what_it_said() -> None:
    """All open slots in every pass but a block's first."""
    adapter = recording(network(), NOISE)
    plugs = Plugs(UniformState(steps=4, calm=0.0, parts=3), Fixed(4), Whole(), Contiguous())
    row = Denoising(Canvas(PROMPT, 8, 0), plugs, NOISE, Keyed(0), Shaping(0.0))
    denoised([row], adapter)

    soft = [query.soft for asked in adapter.passes for query in asked]
    assert [one is None for one in soft[:5]] == [True, False, False, False, True]
    assert soft[1] is not None
    assert soft[1].ids.shape == (4, 3)
    first = [asked[0].canvas for asked in adapter.passes]
    assert all(one is row.canvas for one in first)
