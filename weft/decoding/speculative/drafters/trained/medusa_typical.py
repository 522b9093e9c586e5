"""Medusa with typical acceptance: what is not unlikely stays. Not the target's law any more."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.acceptance import TypicalAcceptance
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.trained.medusa import make_medusa
from weft.decoding.speculative.presets import Options, Preset, share


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = TypicalAcceptance()
    rule = TypicalAcceptance(
        share(options, "epsilon", usual.epsilon), share(options, "delta", usual.delta)
    )
    return make_medusa("medusa_typical", network, options, rule)


PRESET = Preset(
    "medusa_typical",
    "Medusa's heads, whose guesses stay where they are not unlikely: lossy",
    _make,
    lossless=False,
    needs="heads trained for the model",
    options=("num_speculative_tokens", "model", "measured", "epsilon", "delta"),
)
