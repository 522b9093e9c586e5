"""Index of all pairs of tokens in some texts, and so of every longer run that ends with a pair.

It answers the same queries as the suffix tries of SuffixDecoding (arXiv 2411.04975): which runs
occurred, and what followed. It stores one entry per token instead of one per depth, as a worker has
long prompts of many requests, and memory for texts of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

TOKEN_BYTES: Final = 256
"""Memory of a token whose pair never repeats, with CPython 3.11; 60 in real texts."""
_END: Final = -1
_PLACES: Final = 32


class Occurrence(NamedTuple):
    """`text[place]` followed a run of `length` tokens; `growing`: the text may be extended."""

    text: Sequence[int]
    place: int
    length: int
    growing: bool


class NgramIndex:
    """Texts by their pairs of tokens, with the last places of each pair.

    `growing`: there is one text, which is still being written. Adding a token takes constant time.
    """

    def __init__(self, *, growing: bool = False) -> None:
        self._text: list[int] = []
        self._growing = growing
        self._after: dict[int, list[int]] = {}
        self._last = _END

    def __len__(self) -> int:
        """Tokens, and one end per text."""
        return len(self._text)

    def add(self, text: Sequence[int]) -> None:
        """Add a whole text."""
        self.extend(text)
        self._text.append(_END)
        self._last = _END

    def extend(self, tokens: Sequence[int]) -> None:
        """Append to the current text."""
        for token in tokens:
            place = len(self._text) + 1
            self._note(~token, place)
            if self._last != _END:
                self._note(_pair(self._last, token), place)
            self._text.append(token)
            self._last = token

    def occurrences(self, end: Sequence[int], longest: int, most: int) -> Iterator[Occurrence]:
        """Occurrences of the last tokens of `end` that are followed by a token.

        Runs have two tokens or more, or one where no pair occurs. At most `most` places, the latest
        first; runs longer than `longest` count as that long.
        """
        pairs = self._places_after(_pair(*end[-2:])) if len(end) > 1 else []
        if pairs:
            for at in pairs[:most]:
                length = self._length(at, end, longest)
                yield Occurrence(self._text, at, length, self._growing)
        elif end:
            for at in self._places_after(~end[-1])[:most]:
                yield Occurrence(self._text, at, 1, self._growing)

    def _places_after(self, run: int) -> list[int]:
        """The places after a run that have a token, the latest first."""
        places = reversed(self._after.get(run, ()))
        return [at for at in places if at < len(self._text) and self._text[at] != _END]

    def _note(self, run: int, place: int) -> None:
        places = self._after.setdefault(run, [])
        places.append(place)
        if len(places) >= 2 * _PLACES:
            del places[:_PLACES]

    def _length(self, place: int, end: Sequence[int], longest: int) -> int:
        text, length = self._text, 2
        for token in reversed(end[-longest:-2]):
            at = place - length - 1
            if at < 0 or text[at] != token:
                break
            length += 1
        return length


def _pair(first: int, second: int) -> int:
    return first << 32 | second
