"""How far the sequence has gone on since the target was last looked at. Knows counts only."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decoding.speculative.drafter import Seen


class Place:
    """Told of every pass and every token, as a drafter is; the first tokens are the prompt.

    Guesses made at the last token that was read begin after the target's own next token. What was
    forced after that one (by a grammar) is what the first of them guessed at.
    """

    def __init__(self) -> None:
        self._behind = 1
        self._prompted = False

    @property
    def forced(self) -> int:
        """How many of the first guesses are at tokens that are known by now."""
        return max(self._behind - 1, 0)

    def see(self, seen: Seen) -> None:
        """A pass. Of a prompt, the last piece may leave out its last token, or show its logits."""
        if seen.walk is not None:
            self._behind = -len(seen.walk.path)
        else:
            self._behind = 0 if len(seen.logits) else 1

    def extend(self, tokens: Sequence[int]) -> None:
        """Tokens of the sequence."""
        if self._prompted:
            self._behind += len(tokens)
        self._prompted = True
