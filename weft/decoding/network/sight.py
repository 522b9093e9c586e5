"""Who sees whom in a text that is not read from the left: at once, block by block, or partly so.

Knows columns and positions; knows no model and no decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch


@dataclass(frozen=True, slots=True)
class Sight:
    """A token stands at the position of its column, and sees columns `[0, reach)` up to a horizon.

    block   0: each sees all of them; else up to the end of its own block, counted from column 0
    causal  columns before this one see up to themselves instead
    copies  tokens read beside the text, from column `first_copy` on, each group of them at the
            positions it names: a group sees itself and all that the text's tokens there see, but
            for those tokens. Nobody else sees it
    """

    reach: int
    block: int = 0
    causal: int = 0
    copies: tuple[tuple[int, ...], ...] = ()
    first_copy: int = 0

    @property
    def end(self) -> int:
        """The column after the last that anybody sees."""
        return self.first_copy + sum(map(len, self.copies)) if self.copies else self.reach

    def position(self, column: int) -> int:
        """Where the token of that column stands."""
        if self.copies and column >= self.first_copy:
            return list(chain.from_iterable(self.copies))[column - self.first_copy]
        return column

    def sees_all(self, column: int) -> bool:
        """Whether that token sees all those before it, and nothing after it."""
        return not self.copies and self._horizon(column) == column + 1

    def is_open(self, columns: Sequence[int]) -> bool:
        """Whether all tokens of `columns`, in ascending order, see all columns up to `end`."""
        return not self.copies and self._horizon(columns[0]) == self.reach

    def visible(self, columns: Sequence[int], width: int) -> torch.Tensor:
        """Whether the tokens `columns` see the first `width` tokens: bool [columns, width]."""
        horizons = torch.tensor([self._horizon(self.position(column)) for column in columns])
        seen = torch.arange(width) < horizons[:, None]
        row_of = {column: row for row, column in enumerate(columns)}
        first = self.first_copy
        for group in self.copies:
            there = slice(first, first + len(group))
            for column in range(first, there.stop):
                if column in row_of:
                    row = row_of[column]
                    seen[row, list(group)] = False
                    seen[row, there] = torch.tensor(group) < horizons[row]
            first = there.stop
        return seen

    def _horizon(self, position: int) -> int:
        """The column after the last of the text that a token there sees."""
        if position < self.causal:
            return position + 1
        if not self.block:
            return self.reach
        return min(self.reach, (position // self.block + 1) * self.block)
