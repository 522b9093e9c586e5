"""The acceptance vector: how often the first child is accepted, the second, and so on. Measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.decoding.speculative.tree import ROOT, DraftTree

_MEMORY: Final = 4096.0
_WEIGHT: Final = 8.0
"""What was thought before counts as so many visits."""


class Ranks:
    """Of the children of a node that was reached, by their order; `width` of them are told apart.

    Before anything is measured the first is accepted half of the time, and each later one a third
    as often as the one before.
    """

    def __init__(self, width: int) -> None:
        self.visits = 0
        self._there = [0.0] * width
        self._accepted = [0.0] * width

    @property
    def vector(self) -> tuple[float, ...]:
        """By rank: the probability that this child is the one that is accepted."""
        priors = (0.5 * 3.0**-rank for rank in range(len(self._there)))
        return tuple(
            (accepted + _WEIGHT * prior) / (there + _WEIGHT)
            for accepted, there, prior in zip(self._accepted, self._there, priors, strict=True)
        )

    def observe(self, tree: DraftTree, tokens: Sequence[int]) -> None:
        """A draft, and what was committed: the walk down it, and the token that ended it.

        A child that was rejected is never that token, so the walk can be told from the tokens.
        """
        node = ROOT
        for token in tokens:
            children = tree.children(node)
            ranks = [rank for rank, child in enumerate(children) if tree.tokens[child] == token]
            self._visit(len(children), ranks[0] if ranks else None)
            if not ranks:
                return
            node = children[ranks[0]]

    def as_json(self) -> dict[str, object]:
        """A JSON value that `restore` understands."""
        return {"there": self._there, "accepted": self._accepted}

    def restore(self, value: object) -> bool:
        """Take over what `as_json` gave, for the same width; whether it is such a value."""
        if not isinstance(value, dict):
            return False
        there = _counts(value.get("there"), len(self._there))
        accepted = _counts(value.get("accepted"), len(self._there))
        if there is None or accepted is None:
            return False
        if any(a > t for a, t in zip(accepted, there, strict=True)):
            return False
        self._there, self._accepted = there, accepted
        return True

    def _visit(self, children: int, accepted: int | None) -> None:
        if not children:
            return
        self.visits += 1
        for rank in range(min(children, len(self._there))):
            keeps = 1.0 - 1.0 / _MEMORY
            self._there[rank] = self._there[rank] * keeps + 1.0
            self._accepted[rank] = self._accepted[rank] * keeps + (rank == accepted)


def _counts(value: object, width: int) -> list[float] | None:
    if not isinstance(value, list) or len(value) != width:
        return None
    fine = all(type(each) in {int, float} and math.isfinite(each) and each >= 0 for each in value)
    return [float(each) for each in value] if fine else None
