"""One sequence as a draft model has read it: what its slot holds, and what is still to be read.

Knows tokens and columns; knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence


class Line:
    """The text of a sequence, and the tokens whose keys a slot holds, from column 0.

    After a draft the slot is ahead of the text, and after the text went on it may be behind, or
    hold other tokens. Either is put right by reading on from the first column where they differ:
    what is held of a draft that was accepted stays, and the rest is written over. The last token
    of a draft was never read, so a draft that is accepted whole leaves two tokens to be read.
    """

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.largest = -1
        """The largest token of the text."""
        self._text: list[int] = []
        self._held: list[int] = []
        self._agreed = 0

    def __len__(self) -> int:
        return len(self._text)

    @property
    def held(self) -> tuple[int, ...]:
        """The tokens whose keys the slot holds."""
        return tuple(self._held)

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on."""
        self._text += tokens
        self.largest = max(self.largest, *tokens) if tokens else self.largest

    def unread(self, ahead: Sequence[int] = ()) -> tuple[int, list[int]]:
        """What must be read to tell what follows the text and `ahead`: first column, and tokens.

        That is one token at least, the last one.
        """
        while self._agreed < min(len(self._text), len(self._held)):
            if self._text[self._agreed] != self._held[self._agreed]:
                break
            self._agreed += 1
        wanted = [*self._text[self._agreed :], *ahead]
        same = 0
        for held, token in zip(self._held[self._agreed :], wanted, strict=False):
            if held != token:
                break
            same += 1
        first = min(self._agreed + same, len(self._text) + len(ahead) - 1)
        return first, [*self._text[first:], *ahead[max(0, first - len(self._text)) :]]

    def hold(self, first: int, tokens: Sequence[int]) -> None:
        """What `unread` told was read, or the first of it; what stood there before is gone."""
        assert first <= len(self._held)
        self._held[first:] = tokens
