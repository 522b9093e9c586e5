"""Hidden transfer: states of positions to come, injected midway into the target's own pass."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import Artefact, find
from weft.decoding.speculative.drafters.hidden_transfer.drafter import (
    HiddenTransfer,
    HiddenTransferOptions,
)
from weft.decoding.speculative.heads.transfer import Transfer
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import text, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES

KIND = "hidden_transfer"
FEW = HiddenTransferOptions(nodes=4, width=2)
"""For processors: with three offsets 4 nodes make 20 rows, and more than 16 cost their time."""
MOST_OFFSETS = 16


def _make(network: Network, options: Options) -> Method:
    usual = FEW if network.embed([0]).device.type == "cpu" else HiddenTransferOptions()
    sizes = HiddenTransferOptions(
        nodes=whole(options, "num_speculative_tokens", usual.nodes, 1, MOST_NODES),
        width=whole(options, "width", usual.width, 1, 64),
    )
    artefact = find(KIND, network, text(options, "model"))
    layer = artefact.whole("layer", 0, network.layers - 1)
    maps = loaded(artefact, network)
    return Single(
        "hidden_transfer", lambda: HiddenTransfer(maps, layer, sizes), lambda: Always(sizes.nodes)
    )


def loaded(artefact: Artefact, network: Network) -> Transfer:
    """The trained maps of `artefact`. Raises: `CapabilityError` for one that is broken."""
    maps = Transfer(artefact.whole("offsets", 1, MOST_OFFSETS), network.width)
    maps.load_state_dict({"maps": artefact.tensor("maps", tuple(maps.maps.shape))})
    like = network.embed([0])
    maps.to(like.device, like.dtype).requires_grad_(requires_grad=False)
    return maps


PRESET = Preset(
    "hidden_transfer",
    "linear maps of a state stand in for the positions after it, midway through the pass",
    _make,
    needs="maps trained for the model",
    options=("num_speculative_tokens", "model", "width"),
)
