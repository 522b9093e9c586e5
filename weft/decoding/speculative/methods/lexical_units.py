"""Lexical Unit Decoding as published: what placeholders are sure of is kept. Changes the text."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.accept.confidence import Confidence
from weft.decoding.speculative.drafters.lexical_units.drafter import LexicalUnitOptions
from weft.decoding.speculative.drafters.lexical_units.load import OPTIONS, units
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.preset import Options, Preset


def _make(network: Network, options: Options) -> Method:
    return units("lexical_units", network, options, LexicalUnitOptions(0.9), Confidence())


PRESET = Preset(
    "lexical_units",
    "tokens that placeholders are sure of are kept without a look at them: the text changes",
    _make,
    lossless=False,
    needs="placeholders trained for the model",
    options=OPTIONS,
)
