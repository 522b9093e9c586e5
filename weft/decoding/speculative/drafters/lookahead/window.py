"""The window of Lookahead decoding: several Jacobi trajectories, each a column, side by side.

Knows tokens and their places; knows no model and no pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.auxiliary import AuxPlan
from weft.decoding.speculative.tree import ROOT


class Window:
    """`rows[r][c]` is a guess at the token `c + r` positions after the root; `rows[0][0]` is it.

    Row 0 is a guess at the text to come. Every later row follows, column by column, from the rows
    before it, and a pass that reads all of them says what row comes next. It begins with row 0
    alone, which is wider by one for each row to come: as long as rows are missing, the text moves
    on by a column a step and none is added at the far end.
    """

    def __init__(self, columns: int, rows: int, guess: Callable[[], int]) -> None:
        self._levels = rows
        self.rows = [[guess() for _ in range(columns + rows - 1)]]

    @property
    def full(self) -> bool:
        """Whether every row is there, so that columns are whole n-grams but for their last."""
        return len(self.rows) == self._levels

    @property
    def width(self) -> int:
        """Columns now."""
        return len(self.rows[0])

    def plan(self) -> AuxPlan:
        """All cells but the root, row by row, as rows to be read under the root.

        Row 0 sees row 0 up to itself; a later cell row 0 up to its column, then its own column.
        """
        cells = [(r, c) for r, row in enumerate(self.rows) for c in range(len(row))][1:]
        return AuxPlan(
            tokens=tuple(self.rows[r][c] for r, c in cells),
            under=(ROOT,) * len(cells),
            depths=tuple(r + c for r, c in cells),
            sees=_sees(len(self.rows), self.width),
        )

    def ngrams(self, found: list[int]) -> Iterator[tuple[int, ...]]:
        """Of a full window, each column with what was `found` to follow it."""
        columns = zip(*self.rows, found, strict=True)
        return iter(columns)

    def advance(self, found: list[int]) -> None:
        """`found` [width] follows the last row. The oldest row goes once all are there.

        The place of the root is left for `root`.
        """
        if self.full:
            self.rows = [*self.rows[1:], found]
        else:
            self.rows = [row[1:] for row in (*self.rows, found)]

    def root(self, token: int) -> None:
        """The text goes on with `token`, whatever was guessed."""
        self.rows[0][0] = token


@lru_cache(maxsize=64)
def _sees(rows: int, width: int) -> NDArray[np.bool_]:
    """[cells, cells] without the root's: cells in row-major order."""
    row, column = np.divmod(np.arange(1, rows * width), width)
    below = (row == 0) & (column <= column[:, None])
    own = (column == column[:, None]) & (row <= row[:, None])
    return np.asarray(below | own)
