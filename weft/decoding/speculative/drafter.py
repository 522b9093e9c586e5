"""The port of drafters: who guesses what comes next. Guesses decide the speed, never the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.decoding.speculative.tree import DraftTree


class Drafter(Protocol):
    """Guesses for one sequence. It is told every token of it, in order, and nothing else."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def extend(self, tokens: Sequence[int]) -> None:
        """The sequence goes on with `tokens`: first the prompt, then what is committed."""

    def propose(self, most: int) -> DraftTree:
        """A draft of what follows the last token, of at most `most` nodes; perhaps none."""
