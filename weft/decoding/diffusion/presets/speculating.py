"""One-by-one writing in fewer passes, token for token."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculativePolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, whole, word
from weft.decoding.diffusion.presets.usual import usual

_MOST_ROWS: Final = 256


def _self_speculative(traits: ModelTraits, options: Options) -> DecoderConfig:
    surest = word(options, "order", "leftmost", ("leftmost", "confidence")) == "confidence"
    policy = SelfSpeculativePolicy(
        "confidence" if surest else "leftmost", whole(options, "rows", 16, 1, _MOST_ROWS)
    )
    return usual(policy, traits, options)


PRESETS: Final = (
    DiffusionPreset(
        "self_speculative",
        "the text of one slot a pass, drafted from one pass and verified in a batched one",
        _self_speculative,
        options=("rows", "order", "block"),
        published="3.46x, lossless (SSD, arXiv 2510.04147)",
    ),
)
