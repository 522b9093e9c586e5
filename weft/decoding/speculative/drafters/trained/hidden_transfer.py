"""Hidden transfer (arXiv 2404.12022): states of positions to come, injected midway into a pass.

The authors' code was not found; layer and offsets are settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    FixedDraftLength,
    PerSequenceMethod,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.drafters.trained.guess_tree import likeliest_tree
from weft.decoding.speculative.drafters.trained.rows import GuessPosition, chains_below
from weft.decoding.speculative.presets import Options, Preset, text, whole
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.trained_drafter import TrainedDrafter, find


class HiddenTransferMaps(nn.Module):  # type: ignore[misc]
    """States [rows, width] to [rows, offsets, width]. It begins as the identity at every offset."""

    def __init__(self, offsets: int, width: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(width).repeat(offsets, 1, 1))

    @property
    def offsets(self) -> int:
        """How many positions ahead there are states for."""
        return len(self.maps)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """states: [rows, width]; returns [rows, offsets, width]."""
        return torch.einsum("rw,ovw->rov", states, self.maps)


@dataclass(frozen=True, slots=True)
class HiddenTransferOptions:
    """Trees of at most `nodes`, of the `width` likeliest tokens at each position.

    Raises: `ValueError` for sizes below one.
    """

    nodes: int = 16
    width: int = 4

    def __post_init__(self) -> None:
        if min(self.nodes, self.width) < 1:
            raise ValueError(f"no tree is of {self}")


class HiddenTransfer:
    """Implements `Watching`. `maps` are for what enters `layer`."""

    name = "hidden_transfer"
    taps: tuple[int, ...] = ()

    def __init__(
        self, maps: HiddenTransferMaps, layer: int, options: HiddenTransferOptions
    ) -> None:
        self._maps = maps
        self._layer = layer
        self._options = options
        self._guesses = np.zeros((0, 0), np.float32)
        self._place = GuessPosition()
        self._last: int | None = None

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)
        self._last = tokens[-1] if tokens else self._last

    def see(self, seen: TargetOutputs) -> None:
        self._place.see(seen)
        self._guesses = seen.aux[list(seen.under)]

    def propose(self, most: int) -> DraftProposal:
        if most < 1 or self._last is None:
            return DraftProposal()
        guesses, self._guesses = self._guesses[self._place.forced :], self._guesses[:0]
        tree = likeliest_tree(guesses, most, self._options.width)
        nodes = range(ROOT, len(tree))
        write = self._write(tree, nodes)
        aux = chains_below(tree, nodes, self._maps.offsets, self._last, [write])
        return DraftProposal(tree, aux, self.name)

    def _write(self, tree: DraftTree, nodes: Sequence[int]) -> HiddenStateWrite:
        first = 1 + len(tree)
        rows = tuple(range(first, first + len(nodes) * self._maps.offsets))
        above = [node - ROOT for node in nodes]

        def make(entering: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self._maps(entering[above]).flatten(0, 1)
            return made

        return HiddenStateWrite(self._layer, rows, make)


KIND = "hidden_transfer"
FEW = HiddenTransferOptions(nodes=4, width=2)
"""For processors: with three offsets 4 nodes make 20 rows, and more than 16 cost their time."""
MOST_OFFSETS = 16


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = FEW if network.embed([0]).device.type == "cpu" else HiddenTransferOptions()
    sizes = HiddenTransferOptions(
        nodes=whole(options, "num_speculative_tokens", usual.nodes, 1, MOST_NODES),
        width=whole(options, "width", usual.width, 1, 64),
    )
    artefact = find(KIND, network, text(options, "model"))
    layer = artefact.whole("layer", 0, network.layers - 1)
    maps = loaded(artefact, network)
    return PerSequenceMethod(
        "hidden_transfer",
        lambda: HiddenTransfer(maps, layer, sizes),
        lambda: FixedDraftLength(sizes.nodes),
    )


def loaded(artefact: TrainedDrafter, network: Network) -> HiddenTransferMaps:
    """The trained maps of `artefact`. Raises: `CapabilityError` for one that is broken."""
    maps = HiddenTransferMaps(artefact.whole("offsets", 1, MOST_OFFSETS), network.width)
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
