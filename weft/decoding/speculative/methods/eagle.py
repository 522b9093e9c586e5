"""EAGLE-style drafting: one trained layer on the target's own features, trees that grow."""

from __future__ import annotations

import torch

from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import Artefact, find
from weft.decoding.speculative.drafters.eagle.drafter import EagleMethod
from weft.decoding.speculative.drafters.eagle.model import EagleModel, EagleOptions
from weft.decoding.speculative.heads.eagle import SIZES, EagleLayer, EagleShape
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES

KIND = "eagle"
FEW = EagleOptions(depth=4, width=3, nodes=8)
"""For processors, which read about ten tokens in the time of one."""
_LARGEST = (1 << 16, 1 << 30)
"""Of sizes, and of the base of rotary positions."""


def _make(network: Network, options: Options) -> Method:
    usual = FEW if network.embed([0]).device.type == "cpu" else EagleOptions()
    tree = switch(options, "tree", default=True)
    depth = whole(options, "depth", usual.depth, 1, 32)
    sizes = EagleOptions(
        depth=depth,
        width=whole(options, "width", usual.width, 1, 64) if tree else 1,
        nodes=whole(
            options, "num_speculative_tokens", usual.nodes if tree else depth, 1, MOST_NODES
        ),
    )
    return EagleMethod(loaded(find(KIND, network, text(options, "model")), network, sizes))


def loaded(artefact: Artefact, network: Network, options: EagleOptions) -> EagleModel:
    """The trained layer of `artefact`. Raises: `CapabilityError` for one that is broken."""
    count = artefact.whole("taps", 1, network.layers + 1)
    taps = tuple(artefact.whole(f"tap_{n}", 0, network.layers) for n in range(count))
    sizes = {name: artefact.whole(name, 1, _LARGEST[name == "theta"]) for name in SIZES}
    try:
        shape = EagleShape(width=network.width, **sizes)
    except ValueError as error:
        raise artefact.broken(str(error)) from error
    with torch.device("meta"):
        layer = EagleLayer(shape)
    weights = {
        name: artefact.tensor(name, tuple(value.shape))
        for name, value in layer.state_dict().items()
    }
    layer.load_state_dict(weights, assign=True)
    tokens = artefact.ids("tokens", network.vocabulary_size)
    return EagleModel(layer, taps, tokens, network, options)


PRESET = Preset(
    "eagle",
    "one more layer on the target's features drafts a tree (EAGLE-2's, with EAGLE-3's features)",
    _make,
    needs="a layer trained for the model",
    options=("num_speculative_tokens", "model", "tree", "depth", "width"),
    published=Published(5.71, "EAGLE-3, Spec-Bench, Vicuna-13B greedy on an A100, 59 nodes"),
)
