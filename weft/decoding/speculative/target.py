"""The port of targets: the model whose text it is. One pass reads the last token and a draft."""

from __future__ import annotations

from typing import Protocol

from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.walk import LawAt, Walk


class Target(Protocol):
    """A model within one sequence, of which it has read all but the last token."""

    def verify(self, draft: Draft, taps: tuple[int, ...] = ()) -> LawAt:
        """Read the last token and `draft` in one pass; the law after each node and after `ROOT`.

        What enters the layers `taps` is for the drafter to see.
        """

    def commit(self, walk: Walk) -> Seen:
        """The sequence goes on with the path, then the bonus, which is not read yet.

        What was read of other nodes is forgotten. Returns what the pass showed.
        """
