"""The last tokens of a span side by side, as the nodes of a tree are. Knows no model.

The positions and the mask of tree attention (SpecInfer, arXiv 2305.09781): siblings share a
position, and a token sees what is above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.concurrent.placement import Placement

ORDINARY = Placement()


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """From column `first` on, which holds the root, tokens branch; `base` places those before.

    depths   [rows]: how many positions after the root a token stands; 0 for the root
    sees     [rows, rows]: which of these tokens each sees, itself included; all see what the root
             sees
    """

    first: int
    depths: NDArray[np.int64]
    sees: NDArray[np.bool_]
    base: Placement = ORDINARY

    def position(self, column: int) -> int:
        """Where the token of that column stands."""
        if column < self.first:
            return self.base.position(column)
        return self.base.position(self.first) + int(self.depths[column - self.first])

    def sees_all(self, column: int) -> bool:
        """Whether that token sees all those before it."""
        return column <= self.first and self.base.sees_all(column)

    def visible(self, columns: Sequence[int], width: int) -> torch.Tensor:
        """Whether the tokens `columns` see the first `width` tokens: bool [columns, width]."""
        as_if = [min(column, self.first) for column in columns]
        seen = self.base.visible(as_if, width)
        rows = [row for row, column in enumerate(columns) if column >= self.first]
        end = min(width, self.first + len(self.depths))
        block = torch.from_numpy(self.sees)[:, : end - self.first]
        branching = [columns[row] - self.first for row in rows]
        seen[rows, self.first : end] = block[branching]
        return seen
