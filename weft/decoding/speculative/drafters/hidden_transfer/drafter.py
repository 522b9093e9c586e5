"""The drafter: below every place where the text may go on, rows with transferred states.

A row enters the target's `layer` with a map of its node's state instead of its own, and what the
target makes of it is a guess at the token after its position. The layers before run on these rows
for nothing, and no token sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from weft.decoding.network.write import Write
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.ahead import chains_below
from weft.decoding.speculative.drafters.place import Place
from weft.decoding.speculative.drafters.product import likeliest
from weft.decoding.speculative.heads.transfer import Transfer
from weft.decoding.speculative.tree import ROOT, DraftTree


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

    def __init__(self, maps: Transfer, layer: int, options: HiddenTransferOptions) -> None:
        self._maps = maps
        self._layer = layer
        self._options = options
        self._guesses = np.zeros((0, 0), np.float32)
        self._place = Place()
        self._last: int | None = None

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)
        self._last = tokens[-1] if tokens else self._last

    def see(self, seen: Seen) -> None:
        self._place.see(seen)
        self._guesses = seen.aux[list(seen.under)]

    def propose(self, most: int) -> Draft:
        if most < 1 or self._last is None:
            return Draft()
        guesses, self._guesses = self._guesses[self._place.forced :], self._guesses[:0]
        tree = likeliest(guesses, most, self._options.width)
        nodes = range(ROOT, len(tree))
        write = self._write(tree, nodes)
        aux = chains_below(tree, nodes, self._maps.offsets, self._last, [write])
        return Draft(tree, aux, self.name)

    def _write(self, tree: DraftTree, nodes: Sequence[int]) -> Write:
        first = 1 + len(tree)
        rows = tuple(range(first, first + len(nodes) * self._maps.offsets))
        above = [node - ROOT for node in nodes]

        def make(entering: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self._maps(entering[above]).flatten(0, 1)
            return made

        return Write(self._layer, rows, make)
