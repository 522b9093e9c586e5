"""LLaDA2.x: blocks, a threshold, and from 2.1 on tokens that are overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.confidence import ThresholdPolicy
from weft.decoding.diffusion.policies.editing import IndelPolicy, TokenEditPolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import MOST_SLOTS, usual

_BLOCK: Final = 32


def _llada2(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = ThresholdPolicy(number(options, "threshold", 0.95, 0.0, 1.0))
    return usual(policy, traits, options, block=_BLOCK)


def _edit(options: Options, default: float) -> float | None:
    """The word `off` is off; 0 edits whatever is not the likeliest."""
    return None if options.get("edit") == "off" else number(options, "edit", default, 0.0, 1.0)


def _llada21(write: float, edit: float) -> Callable[[ModelTraits, Options], DecoderConfig]:
    def make(traits: ModelTraits, options: Options) -> DecoderConfig:
        policy = TokenEditPolicy(
            number(options, "threshold", write, 0.0, 1.0),
            _edit(options, edit),
            whole(options, "reviews", 16, 0, MOST_SLOTS),
        )
        return usual(policy, traits, options, block=_BLOCK)

    return make


def _llada22(traits: ModelTraits, options: Options) -> DecoderConfig:
    tokens = [whole(options, name, -1, -1, traits.vocabulary - 1) for name in _CONTROLS]
    if min(tokens) < 0 or len(set(tokens)) < len(tokens):
        raise SpecError(
            "llada22 is for models with control tokens", hint="give keep=, delete= and insert= ids"
        )
    keep, delete, insert = tokens
    policy = IndelPolicy(
        keep,
        delete,
        insert,
        number(options, "threshold", 0.7, 0.0, 1.0),
        number(options, "edit", 0.5, 0.0, 1.0),
        whole(options, "budget", 64, 0, MOST_SLOTS),
    )
    return usual(policy, traits, options, block=_BLOCK)


_CONTROLS: Final = ("keep", "delete", "insert")
_EDITED: Final = ("threshold", "edit", "reviews", "block")

PRESETS: Final = (
    DiffusionPreset(
        "llada2",
        "blocks of 32, all slots whose confidence reaches a threshold",
        _llada2,
        options=("threshold", "block"),
        published="LLaDA2.0-flash-CAP 535 tokens/s at 4.65 tokens a forward, score 76.85 "
        "(LLaDA2.0 report)",
    ),
    DiffusionPreset(
        "llada21_quality",
        "as llada2, and written tokens are overwritten when the model changes its mind",
        _llada21(0.7, 0.5),
        options=_EDITED,
        published="LLaDA2.1-flash 3.64 tokens a forward, mean score 73.54 (LLaDA2.1 report)",
    ),
    DiffusionPreset(
        "llada21_speed",
        "written early, and overwritten whenever another token is likelier",
        _llada21(0.5, 0.0),
        options=_EDITED,
        published="LLaDA2.1-flash 5.93 tokens a forward, mean score 72.34 (LLaDA2.1 report)",
    ),
    DiffusionPreset(
        "llada22",
        "tokens are overwritten, taken out and inserted, by the model's control tokens",
        _llada22,
        needs="a model with control tokens: keep=ID, delete=ID, insert=ID",
        options=("threshold", "edit", "budget", *_CONTROLS, "block"),
        published="SWE-bench Verified 35.8 to 44.4 by editing (LLaDA2.2 report)",
    ),
)
