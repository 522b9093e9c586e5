"""A suffix drafter that keeps what was written, for the texts that sequences share."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.speculative.drafters.suffix.drafter import Guess, Suffixes, SuffixOptions
from weft.decoding.speculative.drafters.suffix.shared import Shared
from weft.decoding.speculative.tree import DraftTree


class Remembered:
    """Implements `Drafter`. `written` is what follows the prompt, with the end of that before it.

    The first tokens it is told are the prompt. Of that so much is kept that what begins an answer
    can be found again: most prompts end alike, with the words of a template.
    """

    name = "suffix"

    def __init__(self, options: SuffixOptions, shared: Shared | None) -> None:
        self._suffixes = Suffixes(options, shared)
        self._kept = options.depth
        self._begun = False
        self.written: list[int] = []

    def extend(self, tokens: Sequence[int]) -> None:
        self._suffixes.extend(tokens)
        self.written.extend(tokens if self._begun else tokens[-self._kept :])
        self._begun = True

    def propose(self, most: int) -> DraftTree:
        return self._suffixes.propose(most)

    def guess(self, most: int) -> Guess:
        """See `Suffixes.guess`."""
        return self._suffixes.guess(most)
