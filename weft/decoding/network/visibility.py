"""Positions and attention masks: which tokens stand where, and which see which.

`Placement` lays stretches side by side (Multiverse, arXiv 2506.09991; ParaThinker, 2509.04475),
`TreeMask` makes the last tokens a tree, `BlockMask` lets blocks of a text see all of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, chain

import numpy as np
import torch
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.core.ports.model import Placed

_NAME_BYTES = 32
_NAMES = 1 << (8 * _NAME_BYTES)


class Placement:
    """Where the tokens of a sequence stand, and which see which.

    The stretches cover its first tokens; all later ones are one last stretch, which sees everything
    and goes on after the highest position. No stretches: an ordinary sequence. `ordinary_tokens` is
    how many leading tokens stand and see as in one; None: all of them.

    Raises: `ModelRequestError` for a stretch that is empty, stands before position 0, or sees one
    that is not before it.
    """

    def __init__(self, stretches: Sequence[Placed] = ()) -> None:
        for number, stretch in enumerate(stretches):
            if stretch.tokens < 1 or stretch.position < 0:
                raise ModelRequestError(f"stretch {number} of the placement cannot be {stretch}")
            if not all(0 <= seen < number for seen in stretch.sees):
                raise ModelRequestError(
                    f"stretch {number} of the placement sees {stretch.sees}",
                    hint="a stretch sees itself and those before it, by index from 0",
                )
        self._firsts = list(accumulate((s.tokens for s in stretches), initial=0))
        self.tokens = self._firsts.pop()
        self.next_position = max((s.position + s.tokens for s in stretches), default=0)
        count = len(stretches)
        last = Placed(0, self.next_position, tuple(range(count)))
        self._stretches = (*stretches, last)
        self._sees = [sorted(set(stretch.sees)) for stretch in self._stretches]
        self._firsts.append(self.tokens)
        self.ordinary_tokens = self._ordinary_tokens()
        self._of = [number for number, s in enumerate(stretches) for _ in range(s.tokens)]

    def position(self, column: int) -> int:
        """Where the token of that index stands."""
        number = self._stretch_of(column)
        return self._stretches[number].position + column - self._firsts[number]

    def sees_all(self, column: int) -> bool:
        """Whether that token sees all those before it."""
        number = self._stretch_of(column)
        return len(self._sees[number]) == number

    def visible(self, columns: Sequence[int], width: int) -> torch.Tensor:
        """Whether the tokens `columns` see the first `width` tokens: bool [columns, width]."""
        count = len(self._stretches)
        sees = torch.zeros(count, count, dtype=torch.bool)
        for number, seen in enumerate(self._sees):
            sees[number, seen] = True
        rows = torch.tensor([self._stretch_of(column) for column in columns])
        others = torch.tensor([self._stretch_of(column) for column in range(width)])
        earlier = torch.arange(width) <= torch.tensor(columns)[:, None]
        return sees[rows][:, others] | ((rows[:, None] == others) & earlier)

    def names(self, tokens: Sequence[int], known: Sequence[int] = ()) -> list[int]:
        """One name for each token; `known` are those of the first tokens, found before.

        Equal names: the same token at the same position, seeing tokens of the same names, so that
        a model computes the same keys and values. Whatever lies in other stretches, and the order
        in which stretches were given, makes no difference.
        """
        names = list(known)
        for number, first in enumerate(self._firsts):
            last = self._firsts[number + 1] if number + 1 < len(self._firsts) else len(tokens)
            if last > len(names):
                seen = sum(self._sum(names, earlier) for earlier in self._sees[number])
                context = seen + sum(names[first:])
                for column in range(len(names), min(last, len(tokens))):
                    names.append(_name(tokens[column], self.position(column), context))
                    context += names[-1]
        return names

    def _ordinary_tokens(self) -> int | None:
        end = 0
        for number, stretch in enumerate(self._stretches):
            if stretch.position != end or len(self._sees[number]) < number:
                return end
            end += stretch.tokens
        return None

    def _sum(self, names: Sequence[int], number: int) -> int:
        return sum(names[self._firsts[number] : self._firsts[number + 1]])

    def _stretch_of(self, column: int) -> int:
        return self._of[column] if column < self.tokens else len(self._stretches) - 1


def _name(token: int, position: int, context: int) -> int:
    told = b"%d %d %d" % (token, position, context % _NAMES)
    return int.from_bytes(blake2b(told, digest_size=_NAME_BYTES).digest())


ORDINARY = Placement()


@dataclass(frozen=True, slots=True, eq=False)
class TreeMask:
    """The positions and the mask of tree attention (SpecInfer, arXiv 2305.09781): siblings share a
    position, and a token sees what is above it.

    From column `first` on, which holds the root, tokens branch; `base` places those before.

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


@dataclass(frozen=True, slots=True)
class BlockMask:
    """Text that is not read from the left: at once, block by block, or partly so.

    A token stands at the position of its column, and sees columns `[0, reach)` up to a horizon.

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
