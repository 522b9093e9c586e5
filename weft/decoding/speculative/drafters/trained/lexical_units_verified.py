"""Lexical units as drafts: what placeholders are likely to be right about is verified."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.acceptance import ExactMatch
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.trained.lexical_units import (
    OPTIONS,
    LexicalUnitOptions,
    units,
)
from weft.decoding.speculative.presets import Options, Preset


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = LexicalUnitOptions(0.1, anywhere=True)
    return units("lexical_units_verified", network, options, usual, ExactMatch())


PRESET = Preset(
    "lexical_units_verified",
    "tokens that placeholders guess, as a chain that the model verifies: the text stays",
    _make,
    needs="placeholders trained for the model",
    options=OPTIONS,
)
