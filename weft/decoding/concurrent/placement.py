"""Prompts whose stretches lie side by side: positions, visibility, and names of what is computed.

The masks and positions of Multiverse (arXiv 2506.09991) and ParaThinker (arXiv 2509.04475), and any
other that `weft.core.ports.model.Placed` can say. Knows tokens; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate

import torch

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
