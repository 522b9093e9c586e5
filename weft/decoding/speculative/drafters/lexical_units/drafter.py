"""The drafter: placeholders after the text, and the tokens they are sure of as a chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.write import Write
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.ahead import chains_below
from weft.decoding.speculative.drafters.place import Place
from weft.decoding.speculative.heads.lexical import Placeholders
from weft.decoding.speculative.tree import ROOT, DraftTree


@dataclass(frozen=True, slots=True)
class LexicalUnitOptions:
    """A placeholder's likeliest token is drafted while it has at least probability `beta`.

    `anywhere`: the draft may be rejected somewhere, so that placeholders are needed below every
    node; else they stand below the last one only.

    Raises: `ValueError` for what is no probability.
    """

    beta: float = 0.9
    anywhere: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.beta <= 1.0:
            raise ValueError(f"beta {self.beta} is no probability")


class LexicalUnits:
    """Implements `Watching`. Placeholders are read as the token `pad`, which is written over."""

    taps: tuple[int, ...] = ()

    def __init__(
        self, name: str, placeholders: Placeholders, pad: int, options: LexicalUnitOptions
    ) -> None:
        self.name = name
        self._placeholders = placeholders
        self._pad = pad
        self._options = options
        self._unit: list[int] = []
        self._place = Place()

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)

    def see(self, seen: Seen) -> None:
        self._place.see(seen)
        self._unit = sure(seen.aux[list(seen.under)], self._options.beta)

    def propose(self, most: int) -> Draft:
        if most < 1:
            return Draft()
        unit, self._unit = self._unit[self._place.forced :], []
        tree = DraftTree.chain(unit[:most])
        nodes = range(ROOT, len(tree)) if self._options.anywhere else [len(tree) - 1]
        count = self._placeholders.count
        writes = self._writes(1 + len(tree), len(nodes))
        return Draft(tree, chains_below(tree, nodes, count, self._pad, writes), self.name)

    def _writes(self, first: int, chains: int) -> list[Write]:
        """For all layers, the first of which is the embedding."""
        placeholders = self._placeholders
        rows = tuple(range(first, first + chains * placeholders.count))
        index = list(rows)

        def embedded(entering: torch.Tensor) -> torch.Tensor:
            return placeholders.rows.repeat(chains, 1).to(entering)

        def corrected(place: int) -> Write:
            return Write(
                placeholders.layers[place],
                rows,
                lambda entering: placeholders.corrected(place, entering[index]),
            )

        return [Write(0, rows, embedded), *map(corrected, range(len(placeholders.layers)))]


def sure(logits: NDArray[np.float32], beta: float) -> list[int]:
    """The likeliest tokens of laws [rows, vocabulary], up to the first that is not sure."""
    tokens = []
    for row in logits:
        scaled = np.exp(row.astype(np.float64) - float(row.max()))
        if 1.0 / scaled.sum() < beta:
            break
        tokens.append(int(row.argmax()))
    return tokens
