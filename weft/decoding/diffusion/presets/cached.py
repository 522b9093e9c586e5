"""Presets with a cache that trusts old keys: the policy of `threshold`, so that the cache is all
that differs.
"""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.approximate import (
    DelayedCache,
    FreeCache,
    IntervalCache,
    PrefixCache,
    VicinityCache,
)
from weft.decoding.diffusion.policies.confidence import FactorPolicy, ThresholdPolicy
from weft.decoding.diffusion.ports import CachePolicy, CommitPolicy, DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole, word
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, block_size
from weft.decoding.diffusion.schedules.fixed_blocks import FixedBlocks
from weft.decoding.diffusion.stops.terminators import FirstTerminator

_BLOCK: Final = 32
_COMMON: Final = ("threshold", "factor", "block")


def cached(cache: CachePolicy, traits: ModelTraits, options: Options) -> DecoderConfig:
    """Plugs with a cache. Of the options `threshold` and `factor` the latter goes first."""
    size = block_size(traits, options, _BLOCK)
    policy: CommitPolicy = ThresholdPolicy(number(options, "threshold", 0.9, 0.0, 1.0))
    if "factor" in options:
        policy = FactorPolicy(number(options, "factor", 1.0, 0.01, 100.0))
    return DecoderConfig(policy, FixedBlocks(size), cache, FirstTerminator())


def _every(options: Options, default: int = 0) -> int | None:
    """The option `refresh`; 0: never."""
    return whole(options, "refresh", default, 0, MOST_SLOTS) or None


def _prefix(traits: ModelTraits, options: Options) -> DecoderConfig:
    return cached(PrefixCache(_every(options)), traits, options)


def _dual(traits: ModelTraits, options: Options) -> DecoderConfig:
    return cached(PrefixCache(_every(options), suffix=False), traits, options)


def _freecache(traits: ModelTraits, options: Options) -> DecoderConfig:
    by_token = word(options, "freeze", "block", ("block", "token")) == "token"
    ahead = whole(options, "ahead", 0, 0, MOST_SLOTS) or None
    behind = whole(options, "behind", 0, 0, MOST_SLOTS)
    return cached(FreeCache(not by_token, behind, ahead), traits, options)


def _delayed(traits: ModelTraits, options: Options) -> DecoderConfig:
    return cached(DelayedCache(_every(options, 8)), traits, options)


def _interval(traits: ModelTraits, options: Options) -> DecoderConfig:
    prompt = whole(options, "prompt", 100, 1, MOST_SLOTS)
    answer = whole(options, "answer", 7, 1, MOST_SLOTS)
    share = number(options, "share", 0.25, 0.0, 1.0)
    return cached(IntervalCache(prompt, answer, share), traits, options)


def _vicinity(traits: ModelTraits, options: Options) -> DecoderConfig:
    near = whole(options, "slots", 16, 0, MOST_SLOTS)
    warm_up = whole(options, "warm_up", 4, 1, MOST_SLOTS)
    return cached(VicinityCache(near, warm_up, _every(options)), traits, options)


PRESETS: Final = (
    DiffusionPreset(
        "fastdllm_prefix",
        "what stands before a block is read once in it",
        _prefix,
        options=(*_COMMON, "refresh"),
        published="LLaDA-8B-Instruct GSM8K, 8 shots, length 1024, A100: 18.6x, 77.3 to 75.7 "
        "points; 5 shots, length 256: 6.7 to 54.4 tokens/s (arXiv 2505.22618)",
    ),
    DiffusionPreset(
        "fastdllm_dual",
        "all that stands around a block is read once in it",
        _dual,
        options=(*_COMMON, "refresh"),
        published="LLaDA-8B-Instruct GSM8K, 8 shots, length 1024, A100: 27.6x, 77.3 to 76.0 points "
        "(arXiv 2505.22618)",
    ),
    DiffusionPreset(
        "freecache",
        "the prompt and finished blocks are never read again",
        _freecache,
        options=(*_COMMON, "freeze", "ahead", "behind"),
        published="with AR-guided unmasking 12.14x on average, up to 34x at long contexts, "
        "Dream-7B-Instruct (FlashDLM, arXiv 2505.21467)",
    ),
    DiffusionPreset(
        "delayed",
        "a token's keys are kept one step after it is written",
        _delayed,
        options=(*_COMMON, "refresh"),
        published="2x to 10x, LLaDA and Dream (dKV-Cache, arXiv 2505.15781)",
    ),
    DiffusionPreset(
        "interval",
        "the prompt is read seldom, the answer oftener, in between what has moved most",
        _interval,
        options=(*_COMMON, "prompt", "answer", "share"),
        published="up to 9.1x, LLaDA and Dream (dLLM-Cache, arXiv 2506.06295)",
    ),
    DiffusionPreset(
        "vicinity",
        "a block is read with its neighbours",
        _vicinity,
        options=(*_COMMON, "slots", "warm_up", "refresh"),
        published="part of dInfer's 1100 tokens/s on HumanEval, LLaDA-MoE on 8 H800 "
        "(arXiv 2510.08666)",
    ),
)
