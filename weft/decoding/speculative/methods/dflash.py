"""DFlash: a small block-diffusion network on the target's features fills a block in one pass."""

from __future__ import annotations

import torch

from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import Artefact, find
from weft.decoding.speculative.drafters.dflash.drafter import DFlashMethod
from weft.decoding.speculative.drafters.dflash.model import DFlashModel
from weft.decoding.speculative.heads.dflash import SIZES, DFlash, DFlashShape
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import text, whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES

KIND = "dflash"
_LARGEST = (1 << 16, 1 << 30)
"""Of sizes, and of the base of rotary positions."""
_MOST_LAYERS = 64


def _make(network: Network, options: Options) -> Method:
    model = loaded(find(KIND, network, text(options, "model")), network)
    usual = model.net.shape.block - 1
    return DFlashMethod(
        model,
        whole(options, "num_speculative_tokens", usual, 1, MOST_NODES),
        whole(options, "width", 1, 1, 64),
    )


def loaded(artefact: Artefact, network: Network) -> DFlashModel:
    """The trained network of `artefact`. Raises: `CapabilityError` for one that is broken."""
    count = artefact.whole("taps", 1, network.layers + 1)
    taps = tuple(artefact.whole(f"tap_{n}", 0, network.layers) for n in range(count))
    artefact.whole("layers", 1, _MOST_LAYERS)
    artefact.whole("block", 2, MOST_NODES)
    sizes = {name: artefact.whole(name, 1, _LARGEST[name == "theta"]) for name in SIZES}
    try:
        shape = DFlashShape(width=network.width, **sizes)
    except ValueError as error:
        raise artefact.broken(str(error)) from error
    with torch.device("meta"):
        net = DFlash(shape)
    weights = {
        name: artefact.tensor(name, tuple(value.shape)) for name, value in net.state_dict().items()
    }
    net.load_state_dict(weights, assign=True)
    return DFlashModel(net, taps, artefact.ids("tokens", network.vocabulary_size), network)


PRESET = Preset(
    "dflash",
    "a small diffusion network on the target's features fills a block of masks in one pass",
    _make,
    needs="a network trained for the model",
    options=("num_speculative_tokens", "model", "width"),
    published=Published(5.33, "DSpark's comparison (arXiv 2607.05147), Qwen3-8B GSM8K at T=1"),
)
