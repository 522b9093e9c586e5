"""Presets that write what the model is sure of, by one number."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.confidence import (
    By,
    EntropyBoundPolicy,
    EntropyThresholdPolicy,
    FactorPolicy,
    ThresholdPolicy,
)
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, word
from weft.decoding.diffusion.presets.usual import usual

_BLOCK: Final = 32
_MOST_NATS: Final = 100.0


def _by(options: Options) -> By:
    chosen = word(options, "by", "drawn", ("drawn", "confidence"))
    return "drawn" if chosen == "drawn" else "confidence"


def _threshold(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = ThresholdPolicy(number(options, "threshold", 0.9, 0.0, 1.0), _by(options))
    return usual(policy, traits, options, block=_BLOCK)


def _factor(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = FactorPolicy(number(options, "factor", 1.0, 0.01, 100.0), _by(options))
    return usual(policy, traits, options, block=_BLOCK)


def _entropy_threshold(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = EntropyThresholdPolicy(number(options, "nats", 0.5, 0.0, _MOST_NATS))
    return usual(policy, traits, options, block=_BLOCK)


def _entropy_bound(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = EntropyBoundPolicy(number(options, "nats", 0.1, 0.0, _MOST_NATS))
    return usual(policy, traits, options, block=_BLOCK)


PRESETS: Final = (
    DiffusionPreset(
        "threshold",
        "all slots whose confidence reaches a threshold",
        _threshold,
        options=("block", "threshold", "by"),
        published="Fast-dLLM without its cache: LLaDA-8B GSM8K 6.7 to 16.5 tokens/s at 0.9 on an "
        "A100 (arXiv 2505.22618)",
    ),
    DiffusionPreset(
        "factor",
        "as many of the surest slots as are sure together",
        _factor,
        options=("block", "factor", "by"),
        published="lossless at 1 where predictions are true and tokens greedy (Fast-dLLM, theorem)",
    ),
    DiffusionPreset(
        "entropy_threshold",
        "all slots with little entropy, for models trained to be certain",
        _entropy_threshold,
        options=("block", "nats"),
        published="with dParallel's students 8.5x on GSM8K (arXiv 2509.26488)",
    ),
    DiffusionPreset(
        "entropy_bound",
        "as many slots as a budget of lost information allows",
        _entropy_bound,
        options=("block", "nats"),
        published="2x to 3x without loss (EB-Sampler, arXiv 2505.24857)",
    ),
)
