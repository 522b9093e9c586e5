"""Presets with a plan: how many slots a step, whatever the model is sure of."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.guidance.logits import ClassifierFreeGuidance, ForbiddenTokens
from weft.decoding.diffusion.policies.fixed_pace import (
    DilatedPolicy,
    EvenSteps,
    EveryStep,
    FixedPacePolicy,
)
from weft.decoding.diffusion.ports import DecoderConfig, GuidancePolicy
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole, word
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, usual

_MOST_GUIDANCE: Final = 100.0


def _sequential(traits: ModelTraits, options: Options) -> DecoderConfig:
    return usual(FixedPacePolicy(EveryStep(1), "leftmost"), traits, options)


def _llada(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Tokens are drawn anew at each step, and ranked by the probability of what was drawn."""
    steps = whole(options, "steps", 0, 0, MOST_SLOTS)
    scale = number(options, "guidance", 0.0, 0.0, _MOST_GUIDANCE)
    ends = word(options, "ends", "any", ("any", "last", "never"))
    random = word(options, "order", "confidence", ("confidence", "random")) == "random"
    pace = EvenSteps(steps) if steps else EveryStep(1)
    policy = FixedPacePolicy(pace, "random" if random else "drawn", ends_last=ends == "last")
    guidance: list[GuidancePolicy] = [ClassifierFreeGuidance(scale)] if scale else []
    if ends == "never":
        guidance.append(ForbiddenTokens(traits.end_ids))
    plugs = usual(policy, traits, options, block=32, fresh=True)
    return replace(plugs, guidance=tuple(guidance))


def _random(traits: ModelTraits, options: Options) -> DecoderConfig:
    count = whole(options, "count", 2, 1, MOST_SLOTS)
    return usual(FixedPacePolicy(EveryStep(count), "random"), traits, options)


def _dilated(traits: ModelTraits, options: Options) -> DecoderConfig:
    base = whole(options, "base", 2, 2, MOST_SLOTS)
    return usual(DilatedPolicy(base), traits, options, block=32)


PRESETS: Final = (
    DiffusionPreset(
        "sequential",
        "one slot a pass, left to right",
        _sequential,
        plain=True,
        options=("block",),
    ),
    DiffusionPreset(
        "llada",
        "equal steps in each block, the surest slots first",
        _llada,
        options=("block", "steps", "order", "ends", "guidance"),
        published="LLaDA-8B-Instruct: GSM8K 78.6 with length 256 and blocks of 8, 69.4 with length "
        "512 and one block (LLaDA repository, evaluation table)",
    ),
    DiffusionPreset(
        "random",
        "as many slots a pass as asked for, in random order",
        _random,
        options=("block", "count"),
    ),
    DiffusionPreset(
        "dilated",
        "slots that stand apart first, with half the gap in each pass",
        _dilated,
        options=("block", "base"),
    ),
)
