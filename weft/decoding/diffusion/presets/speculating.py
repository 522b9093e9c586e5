"""One-by-one writing in fewer passes, token for token."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.option import whole, word
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.self_speculative import SelfSpeculative
from weft.decoding.diffusion.preset import DiffusionPreset, Options
from weft.decoding.diffusion.presets.usual import usual

_MOST_ROWS: Final = 256


def _self_speculative(traits: Traits, options: Options) -> Plugs:
    surest = word(options, "order", "leftmost", ("leftmost", "confidence")) == "confidence"
    policy = SelfSpeculative(
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
