"""As many slots a pass as provably hardly depend on each other, with a second look (ours)."""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.policies.adaptive import AdaptivePolicy
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.preset import DiffusionPreset, Options, number, whole
from weft.decoding.diffusion.presets.usual import usual

_MOST_ROUNDS: Final = 64
_DEFAULT: Final = AdaptivePolicy()


def _adaptive(traits: ModelTraits, options: Options) -> DecoderConfig:
    policy = AdaptivePolicy(
        number(options, "risk", _DEFAULT.risk, 0.0, 1.0),
        number(options, "care", _DEFAULT.care, 0.0, 1.0),
        number(options, "doubt", _DEFAULT.doubt, 0.0, 1.0),
        whole(options, "rounds", _DEFAULT.rounds, 0, _MOST_ROUNDS),
    )
    return usual(policy, traits, options)


PRESETS: Final = (
    DiffusionPreset(
        "adaptive",
        "slots that hardly depend on each other together, the others one by one, then a look back",
        _adaptive,
        options=("risk", "care", "doubt", "rounds", "block"),
    ),
)
