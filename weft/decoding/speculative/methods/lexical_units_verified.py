"""Lexical units as drafts: what placeholders are likely to be right about is verified."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.drafters.lexical_units.drafter import LexicalUnitOptions
from weft.decoding.speculative.drafters.lexical_units.load import OPTIONS, units
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.preset import Options, Preset


def _make(network: Network, options: Options) -> Method:
    usual = LexicalUnitOptions(0.1, anywhere=True)
    return units("lexical_units_verified", network, options, usual, Match())


PRESET = Preset(
    "lexical_units_verified",
    "tokens that placeholders guess, as a chain that the model verifies: the text stays",
    _make,
    needs="placeholders trained for the model",
    options=OPTIONS,
)
