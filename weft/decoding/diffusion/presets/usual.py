"""What presets share: blocks from left to right, an exact cache, an end at the first terminator."""

from __future__ import annotations

from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.ports import CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.preset import Options, whole
from weft.decoding.diffusion.schedules.fixed_blocks import FixedBlocks
from weft.decoding.diffusion.stops.terminators import FirstTerminator

MOST_SLOTS: Final = 4096


def usual(
    commit: CommitPolicy,
    traits: ModelTraits,
    options: Options,
    *,
    block: int = 0,
    trims: bool = False,
    fresh: bool = False,
) -> DecoderConfig:
    """Plugs for a policy. The option `block` is the slots of a block, 0: all of the answer. A model
    that has blocks is served by these, or by equal parts of them. Raises: `SpecError` for another.
    """
    size = block_size(traits, options, block)
    return DecoderConfig(
        commit, FixedBlocks(size), exact_cache(traits), FirstTerminator(trims), fresh=fresh
    )


def block_size(traits: ModelTraits, options: Options, block: int = 0) -> int:
    """The option `block`. Raises: `SpecError` for one that does not fit the model's blocks."""
    size = whole(options, "block", traits.block or block, 0, MOST_SLOTS)
    if traits.block and (size == 0 or traits.block % size):
        raise SpecError(
            f"blocks of {size} slots do not fit a model with blocks of {traits.block}",
            hint="a slot never sees later blocks: leave `block` out, or take a divisor",
        )
    return size


def exact_cache(traits: ModelTraits) -> CachePolicy:
    """The best one that changes no prediction: none, where all slots see each other."""
    return NoCache() if traits.attention == "full" else BlockCausalCache(joined=True)
