"""Finds the end of a boxed answer in text that arrives in pieces. Reads each character once."""

from __future__ import annotations

from typing import Final

_BOX: Final = "\\boxed{"


class BoxScanner:
    r"""Feed it a text in pieces of any size: it says when a \boxed{...} that is not empty ends.

    Of nested boxes the innermost counts, since its end comes first.
    """

    def __init__(self) -> None:
        self._begun = 0  # how much of `_BOX` the text ends with
        self._depth = 0  # of braces inside a box; 0: outside
        self._filled = False

    def feed(self, text: str) -> bool:
        """Whether a box that is not empty ends in `text`."""
        found = False
        for character in text:
            found = self._ends(character) or found
        return found

    def _ends(self, character: str) -> bool:
        """Take one character; whether it ends a box that is not empty."""
        self._begun = self._begun + 1 if character == _BOX[self._begun] else character == _BOX[0]
        if self._begun == len(_BOX):
            self._begun, self._depth, self._filled = 0, 1, False
            return False
        if not self._depth:
            return False
        self._depth += (character == "{") - (character == "}")
        if self._depth:
            self._filled = self._filled or not character.isspace()
            return False
        return self._filled
