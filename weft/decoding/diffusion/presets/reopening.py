"""Presets that take back what was written."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.remasking import (
    RemdmPolicy,
    RunningConfidencePolicy,
    WinoPolicy,
)
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, usual

_BLOCK: Final = 128


def _wino(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = WinoPolicy(
        number(options, "draft", 0.6, 0.0, 1.0), number(options, "verify", 0.9, 0.0, 1.0)
    )
    return usual(policy, traits, options, block=_BLOCK)


def _rcr(traits: ModelTraits, options: Options) -> DecoderConfig:
    return usual(
        RunningConfidencePolicy(whole(options, "count", 1, 1, MOST_SLOTS)),
        traits,
        options,
        block=_BLOCK,
    )


def _remdm(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = RemdmPolicy(
        whole(options, "count", 1, 1, MOST_SLOTS),
        number(options, "rate", 0.2, 0.0, 1.0),
        whole(options, "budget", 32, 0, MOST_SLOTS),
    )
    return usual(policy, traits, options, block=_BLOCK)


PRESETS: Final = (
    DiffusionPreset(
        "wino",
        "many slots are drafted, and opened again where the others do not expect them",
        _wino,
        options=("draft", "verify", "block"),
        published="LLaDA-8B-Instruct GSM8K 6x with +2.58 points (WINO, arXiv 2507.18578)",
    ),
    DiffusionPreset(
        "rcr",
        "so many more slots are kept at each pass, the surest so far",
        _rcr,
        options=("count", "block"),
    ),
    DiffusionPreset(
        "remdm",
        "written slots are opened again by chance, the doubtful ones more often",
        _remdm,
        options=("count", "rate", "budget", "block"),
    ),
)
