"""Hidden transfer (arXiv 2404.12022): states of later positions, injected midway into a pass.

The authors' code was not found; layer and offsets are settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.trained.guess_tree import likeliest_tree
from weft.decoding.speculative.drafters.trained.rows import RowDrafter
from weft.decoding.speculative.presets import Options, Preset, text, whole
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.trained_drafter import find


class HiddenTransferMaps(nn.Module):  # type: ignore[misc]
    """Linear maps by offset: states [rows, width] to [rows, offsets, width]; first identities."""

    def __init__(self, offsets: int, width: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(width).repeat(offsets, 1, 1))

    @property
    def offsets(self) -> int:
        """Number of later positions with states."""
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


class HiddenTransferDrafter(RowDrafter):
    """Implements `TargetObserver`: a row enters the target's `layer` as a map of its node's state.
    The layers before compute these rows in vain; no token sees them.
    """

    def __init__(
        self, maps: HiddenTransferMaps, layer: int, options: HiddenTransferOptions
    ) -> None:
        super().__init__("hidden_transfer")
        self._maps = maps
        self._layer = layer
        self._width = options.width

    def draft(
        self, logits: NDArray[np.float32], forced: int, most: int
    ) -> tuple[DraftTree, Sequence[int]]:
        tree = likeliest_tree(logits[forced:], most, self._width)
        return tree, [self._maps.offsets] * (1 + len(tree))

    def writes(self, rows: tuple[int, ...], counts: Sequence[int]) -> Sequence[HiddenStateWrite]:
        def transferred(entering: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self._maps(entering[: len(counts)]).flatten(0, 1)
            return made

        return [HiddenStateWrite(self._layer, rows, transferred)]


KIND = "hidden_transfer"
FEW = HiddenTransferOptions(nodes=4, width=2)
"""For CPUs: with three offsets 4 nodes make 20 rows, and rows beyond 16 cost time."""
MOST_OFFSETS = 16


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = FEW if network.embed([0]).device.type == "cpu" else HiddenTransferOptions()
    sizes = HiddenTransferOptions(
        nodes=whole(options, "num_speculative_tokens", usual.nodes, 1, MOST_NODES),
        width=whole(options, "width", usual.width, 1, 64),
    )
    artefact = find(KIND, network, text(options, "model"))
    layer = artefact.whole("layer", 0, network.layers - 1)
    maps = HiddenTransferMaps(artefact.whole("offsets", 1, MOST_OFFSETS), network.width)
    artefact.fill(maps, network.embed([0]))
    return PerSequenceMethod(
        "hidden_transfer", lambda: HiddenTransferDrafter(maps, layer, sizes), sizes.nodes
    )


PRESETS = (
    Preset(
        "hidden_transfer",
        "linear maps of a state stand in for the positions after it, midway through the pass",
        _make,
        needs="maps trained for the model",
        options=("num_speculative_tokens", "model", "width"),
    ),
)
