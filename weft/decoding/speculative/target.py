"""The port of targets: the model whose text it is. One pass reads the last token and a draft."""

from __future__ import annotations

from typing import Protocol

from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import LawAt


class Target(Protocol):
    """A model within one sequence, of which it has read all but the last token."""

    def verify(self, tree: DraftTree) -> LawAt:
        """Read the last token and `tree` in one pass; the law after each node and after `ROOT`."""

    def commit(self, path: tuple[int, ...], bonus: int) -> None:
        """The sequence goes on with the nodes of `path`, then `bonus`, which is not read yet.

        What was read of other nodes is forgotten.
        """
