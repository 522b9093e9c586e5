"""Presets for models that write block after block and never read a finished one again.

Models whose slots all see each other are served block by block as well, without a cache.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import CachePolicy
from weft.decoding.diffusion.caches.block_causal import BlockCausal
from weft.decoding.diffusion.caches.whole import Whole
from weft.decoding.diffusion.option import number, whole, word
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.pace import Every, Split
from weft.decoding.diffusion.policies.threshold import Threshold
from weft.decoding.diffusion.preset import DiffusionPreset, Options
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, block_size
from weft.decoding.diffusion.schedules.fixed import Fixed
from weft.decoding.diffusion.stops.contiguous import Contiguous

_BLOCK: Final = 32
_SUB_BLOCK: Final = 8


def _stored(traits: Traits, cache: BlockCausal) -> CachePolicy:
    return Whole() if traits.attention == "full" else cache


def _sdar(traits: Traits, options: Options) -> Plugs:
    """`steps` is the schedule that a block falls back to where nothing is sure."""
    steps = whole(options, "steps", 0, 0, MOST_SLOTS)
    policy = Threshold(
        number(options, "threshold", 0.9, 0.0, 1.0), pace=Split(steps) if steps else Every(1)
    )
    joined = word(options, "store", "apart", ("apart", "joined")) == "joined"
    size = block_size(traits, options, _BLOCK)
    return Plugs(policy, Fixed(size), _stored(traits, BlockCausal(joined=joined)), Contiguous())


def _fastdllm_v2(traits: Traits, options: Options) -> Plugs:
    """Sub-blocks of a block go from left to right; the pass that stores a block writes on."""
    policy = Threshold(number(options, "threshold", 0.9, 0.0, 1.0))
    sub = block_size(traits, {"block": gcd(_SUB_BLOCK, traits.block), **options})
    within = word(options, "inside", "whole", ("whole", "dual")) == "dual"
    cache = BlockCausal(predicts=traits.shifted, within=within)
    return Plugs(policy, Fixed(sub), _stored(traits, cache), Contiguous())


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
