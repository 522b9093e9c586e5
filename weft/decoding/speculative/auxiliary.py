"""Rows that are read along with a draft and are no candidates: what one-pass methods look ahead by.

Prompt tokens (PPD, arXiv 2405.18628), look-ahead tokens (PaSS, arXiv 2311.13581), the window of
Lookahead (arXiv 2402.02057), injected states (hidden transfer, arXiv 2404.12022).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.write import Write
from weft.decoding.speculative.tree import ROOT, DraftTree


def _nothing() -> NDArray[np.bool_]:
    return np.zeros((0, 0), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class AuxPlan:
    """Each row reads a token of `tokens`, and hangs under a node of the draft, or `ROOT`.

    under    that node; the row sees it and all above it
    depths   how many positions after the root the row stands
    sees     [rows, rows]: which of these rows each sees, itself included
    writes   what is put in the place of hidden states; there row 0 is the root, then come the
             nodes, then these rows

    Raises: `ValueError` where sizes differ.
    """

    tokens: tuple[int, ...] = ()
    under: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    sees: NDArray[np.bool_] = field(default_factory=_nothing)
    writes: tuple[Write, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.tokens)
        if {len(self.under), len(self.depths), *self.sees.shape} != {count}:
            raise ValueError(f"{count} rows of unlike sizes")

    def __len__(self) -> int:
        return len(self.tokens)

    def below(self, node: int) -> tuple[int, ...]:
        """The rows that hang under `node`."""
        return tuple(row for row, above in enumerate(self.under) if above == node)

    def depths_with(self, tree: DraftTree) -> NDArray[np.int64]:
        """[1 + nodes + rows]: how many positions after the root each stands."""
        return np.concatenate([tree.depths, np.array(self.depths, np.int64)])

    def sees_with(self, tree: DraftTree) -> NDArray[np.bool_]:
        """[1 + nodes + rows, 1 + nodes + rows]: which each sees. No node sees a row."""
        nodes = 1 + len(tree)
        seen = np.zeros((nodes + len(self),) * 2, np.bool_)
        seen[:nodes, :nodes] = tree.ancestors
        seen[nodes:, :nodes] = seen[[node - ROOT for node in self.under], :nodes]
        seen[nodes:, nodes:] = self.sees
        return seen


NOTHING = AuxPlan()
