"""Presets that remember earlier predictions, and how far apart slots are written."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.confidence import HierarchyPolicy, ThresholdPolicy
from weft.decoding.diffusion.policies.history import CreditPolicy, KlassPolicy, SmoothingPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import usual

_BLOCK: Final = 32
_KLASS_BLOCK: Final = 64
_MOST_NATS: Final = 100.0


def _klass(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = KlassPolicy(
        number(options, "confidence", 0.6, 0.0, 1.0),
        number(options, "divergence", 0.015, 0.0, _MOST_NATS),
        whole(options, "history", 2, 1, _KLASS_BLOCK),
    )
    return usual(policy, traits, options, block=_KLASS_BLOCK)


def _hierarchy(traits: ModelTraits, options: Options) -> DecoderConfig:
    high = number(options, "threshold", 0.9, 0.0, 1.0)
    policy = HierarchyPolicy(high, number(options, "low", min(0.4, high), 0.0, high))
    return usual(policy, traits, options, block=_BLOCK)


def _credit(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = CreditPolicy(
        ThresholdPolicy(number(options, "threshold", 0.9, 0.0, 1.0)),
        weight=number(options, "weight", 0.65, 0.0, 100.0),
        decay=number(options, "decay", 0.8, 0.0, 1.0),
    )
    return usual(policy, traits, options, block=_BLOCK)


def _smooth(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = SmoothingPolicy(
        number(options, "threshold", 0.9, 0.0, 1.0), weight=number(options, "weight", 0.15, 0, 0.3)
    )
    return usual(policy, traits, options, block=_BLOCK)


PRESETS: Final = (
    DiffusionPreset(
        "klass",
        "slots that are sure and whose predictions stand still",
        _klass,
        options=("confidence", "divergence", "history", "block"),
        published="2.78x on reasoning without training (KLASS, arXiv 2511.05664)",
    ),
    DiffusionPreset(
        "hierarchy",
        "the best slot of each gap, and all that are sure",
        _hierarchy,
        options=("threshold", "low", "block"),
        published="part of dInfer's 1100 tokens/s on HumanEval with LLaDA-MoE on 8 H800 "
        "(arXiv 2510.08666)",
    ),
    DiffusionPreset(
        "credit",
        "tokens that stay likeliest get credit, then a threshold",
        _credit,
        options=("threshold", "weight", "decay", "block"),
        published="LLaDA-8B-Instruct 5.48x with +.48 points over 8 benchmarks "
        "(CreditDecoding, arXiv 2510.06133)",
    ),
    DiffusionPreset(
        "smooth",
        "open slots are read as a little of what was predicted, and a threshold falls",
        _smooth,
        options=("threshold", "weight", "block"),
        published="part of dInfer's fastest setting (arXiv 2510.08666)",
    ),
)
