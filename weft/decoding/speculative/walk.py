"""What came of a draft: the nodes that were accepted, and the token after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import DraftTree

LawAt = Callable[[int], NDArray[np.float64]]
"""The target's law [vocabulary] of what follows a node, or `ROOT`."""


@dataclass(frozen=True, slots=True)
class Walk:
    """`path`: accepted nodes from the root down; `bonus`: the target's own token after the last.

    `tried` counts the candidates that were looked at, the accepted ones included.
    """

    path: tuple[int, ...]
    bonus: int
    tried: int = 0

    def tokens(self, tree: DraftTree) -> tuple[int, ...]:
        """What is committed: at least one token."""
        return (*(tree.tokens[node] for node in self.path), self.bonus)


class Acceptor(Protocol):
    """A rule that keeps the target's law, whatever the draft: a lossless one."""

    def walk(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        """Walk down `tree`. `position` is that of the first token that is decided."""
