"""Dream's four orders, and Dimple's confident decoding.

Dream ranks by what temperature and cuts have left of a prediction; here the prediction itself is
ranked, because a cut looks like certainty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.fixed_pace import AncestralPolicy, FadingPace, FixedPacePolicy
from weft.decoding.diffusion.policies.ranking import Score
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, usual

_MOST_SPREAD: Final = 100.0


def _steps(options: Options) -> int:
    """0: as many as slots, which Dream's authors suggest."""
    return whole(options, "steps", 0, 0, MOST_SLOTS)


def _origin(traits: ModelTraits, options: Options) -> DecoderConfig:
    return usual(AncestralPolicy(_steps(options)), traits, options, fresh=True)


def _ranked(score: Score) -> Callable[[ModelTraits, Options], DecoderConfig]:
    def make(traits: ModelTraits, options: Options) -> DecoderConfig:
        spread = number(options, "spread", 0.0, 0.0, _MOST_SPREAD)
        policy = FixedPacePolicy(FadingPace(_steps(options)), score, spread)
        return usual(policy, traits, options, fresh=True)

    return make


def _dimple(traits: ModelTraits, options: Options) -> DecoderConfig:
    """Structure priors are literals of the canvas."""
    threshold = number(options, "threshold", 0.95, 0.0, 1.0)
    policy = ThresholdPolicy(threshold, "drawn", FadingPace(_steps(options), least=1))
    return usual(policy, traits, options, fresh=True)


_OPTIONS: Final = ("block", "steps", "spread")

PRESETS: Final = (
    DiffusionPreset(
        "dream_origin",
        "each slot is written by chance as time passes",
        _origin,
        options=("block", "steps"),
    ),
    DiffusionPreset(
        "dream_maskgit",
        "Dream's pace, the slots whose tokens are likeliest first",
        _ranked("drawn"),
        options=_OPTIONS,
    ),
    DiffusionPreset(
        "dream_margin",
        "Dream's pace, the slots with the largest margin to the second token first",
        _ranked("margin"),
        options=_OPTIONS,
    ),
    DiffusionPreset(
        "dream_entropy",
        "Dream's pace, the slots with the least entropy first",
        _ranked("entropy"),
        options=_OPTIONS,
    ),
    DiffusionPreset(
        "dimple",
        "all slots above a confidence of 0.95, else those of Dream's pace",
        _dimple,
        options=("block", "steps", "threshold"),
        published="about a third as many passes as tokens (Dimple, arXiv 2505.16990)",
    ),
)
