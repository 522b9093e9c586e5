"""Which slots have moved since a network read them: told by the values of an early layer.

The measure of dLLM-Cache (arXiv 2506.06295): values that have turned little will give little else.
Knows spans; knows no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cosine_similarity

from weft.decoding.diffusion.canvas import Slots

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.network.packing import Span


class Probe:
    """The first layers of `network`: they read a text whole, for the values of the last of them.

    `layer` is the one that is looked at, from 0, or the last. The values of layer 0 tell nothing:
    they are those of the token alone.

    Raises: `CapabilityError` where the layers cannot be found.
    """

    def __init__(self, network: Network, layer: int = 1) -> None:
        self._network = network
        self._layer = min(layer, network.layers - 1)
        self._early = network.share(self._layer + 1)

    def moved(self, spans: Sequence[Span], slots: Sequence[Slots]) -> list[torch.Tensor]:
        """How far the values of `slots` of each span's row are from those kept: 1 - cosine.

        The spans read their rows whole. Each answer is [slots], on the CPU.
        """
        self._early.forward(spans)
        found = []
        for span, columns in zip(spans, slots, strict=True):
            now = self._early.values(span.slot, self._layer, columns.tolist())
            kept = self._network.values(span.slot, self._layer, columns.tolist())
            found.append(1 - cosine_similarity(now.float(), kept.float(), dim=-1).cpu())
        return found
