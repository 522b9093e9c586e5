"""Where every pair of tokens occurs in some texts, and so every longer run that ends with it.

It answers what the suffix tries of SuffixDecoding (arXiv 2411.04975) answer, which runs occurred
and what followed, but keeps one entry a token instead of one for each depth: a worker has long
prompts of many requests, and memory for what others wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

TOKEN_BYTES: Final = 256
"""What a token takes where no pair ever comes again, with CPython 3.11; in texts it is 60."""
_END: Final = -1
_PLACES: Final = 32


class Occurrence(NamedTuple):
    """`text` has at `place` what followed a run of `length` tokens; `growing`: it may go on."""

    text: Sequence[int]
    place: int
    length: int
    growing: bool


class NgramIndex:
    """Texts by their pairs of tokens, of each pair the last places. `growing`: one, still written.

    Adding a token costs the same however many there are.
    """

    def __init__(self, *, growing: bool = False) -> None:
        self._text: list[int] = []
        self._growing = growing
        self._after: dict[int, list[int]] = {}
        self._last = _END

    def __len__(self) -> int:
        """Tokens, and an end for each text."""
        return len(self._text)

    def add(self, text: Sequence[int]) -> None:
        """A whole text."""
        self.extend(text)
        self._text.append(_END)
        self._last = _END

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on."""
        for token in tokens:
            place = len(self._text) + 1
            self._note(~token, place)
            if self._last != _END:
                self._note(_pair(self._last, token), place)
            self._text.append(token)
            self._last = token

    def occurrences(self, end: Sequence[int], longest: int, most: int) -> Iterator[Occurrence]:
        """Where the last tokens of `end` occur with something after them: two of them or more.

        Where no two do, one. The latest `most` places first; runs longer than `longest` count as
        that long.
        """
        pairs = self._followed(_pair(*end[-2:])) if len(end) > 1 else []
        if pairs:
            for at in pairs[:most]:
                length = self._length(at, end, longest)
                yield Occurrence(self._text, at, length, self._growing)
        elif end:
            for at in self._followed(~end[-1])[:most]:
                yield Occurrence(self._text, at, 1, self._growing)

    def _followed(self, run: int) -> list[int]:
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
