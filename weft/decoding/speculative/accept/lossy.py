"""The port of rules that may change the text. Not an `Acceptor`: they have to be asked for."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import LawAt, Walk


@runtime_checkable
class LossyAcceptor(Protocol):
    """A rule that does not keep the target's law."""

    def walk_lossy(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        """As `Acceptor.walk`, of which it keeps the shape only."""
