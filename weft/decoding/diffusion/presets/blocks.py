"""Presets for models that write block after block and never read a finished one again.

Models whose slots all see each other are served block by block as well, without a cache.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.fixed_pace import EvenSteps, EveryStep
from weft.decoding.diffusion.ports import CachePolicy, DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole, word
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, block_size
from weft.decoding.diffusion.schedules.fixed_blocks import FixedBlocks
from weft.decoding.diffusion.stops.terminators import FirstTerminator

_BLOCK: Final = 32
_SUB_BLOCK: Final = 8


def _stored(traits: ModelTraits, cache: BlockCausalCache) -> CachePolicy:
    return NoCache() if traits.attention == "full" else cache


def _sdar(traits: ModelTraits, options: Options) -> DecoderConfig:
    """`steps` is the schedule that a block falls back to where nothing is sure."""
    steps = whole(options, "steps", 0, 0, MOST_SLOTS)
    policy = ThresholdPolicy(
        number(options, "threshold", 0.9, 0.0, 1.0),
        pace=EvenSteps(steps) if steps else EveryStep(1),
    )
    joined = word(options, "store", "apart", ("apart", "joined")) == "joined"
    size = block_size(traits, options, _BLOCK)
    return DecoderConfig(
        policy,
        FixedBlocks(size),
        _stored(traits, BlockCausalCache(joined=joined)),
        FirstTerminator(),
    )


def _fastdllm_v2(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Sub-blocks of a block go from left to right; the pass that stores a block writes on."""
    policy = ThresholdPolicy(number(options, "threshold", 0.9, 0.0, 1.0))
    sub = block_size(traits, {"block": gcd(_SUB_BLOCK, traits.block), **options})
    within = word(options, "inside", "whole", ("whole", "dual")) == "dual"
    cache = BlockCausalCache(predicts=traits.shifted, within=within)
    return DecoderConfig(policy, FixedBlocks(sub), _stored(traits, cache), FirstTerminator())


PRESETS: Final = (
    DiffusionPreset(
        "sdar",
        "block by block; what is sure in each pass, and a pass that stores each block",
        _sdar,
        options=("threshold", "block", "steps", "store"),
        published="SDAR: over 2x its static schedule; 4B in JetEngine 1800 tokens/s on an A800 at "
        "batch 128 (repository)",
    ),
    DiffusionPreset(
        "fastdllm_v2",
        "sub-blocks from left to right; the pass that stores a block writes the next token",
        _fastdllm_v2,
        options=("threshold", "block", "inside"),
        published="7B: up to 2.5x its autoregressive origin, 60.3 points on average "
        "(arXiv 2509.26328)",
    ),
)
