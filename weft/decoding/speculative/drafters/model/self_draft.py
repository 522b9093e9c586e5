"""The target's own first layers draft a chain, untrained; its last ones verify."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.model.draft_cache import own_layers
from weft.decoding.speculative.drafters.model.draft_model import OPTIONS, chains
from weft.decoding.speculative.presets import Options, Preset, whole


def _make(network: Network, options: Options) -> SpeculativeMethod:
    layers = whole(options, "layers", 0, 0, network.layers - 1)
    return chains("self_draft", own_layers(network, layers), network, options)


PRESET = Preset(
    "self_draft",
    "the target's own first layers draft a chain; `layers` of them, a third by default",
    _make,
    options=("layers", *OPTIONS),
)
