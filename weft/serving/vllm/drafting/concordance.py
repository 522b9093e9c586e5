"""Where every pair of tokens occurs in some texts, and so every longer run that ends with it.

It answers what the suffix tries of SuffixDecoding (arXiv 2411.04975) answer, which runs occurred
and what followed, but keeps one entry a token instead of one for each depth: a worker has long
prompts of many requests, and memory for what others wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

TOKEN_BYTES: Final = 200
"""What a token takes, as measured with CPython 3.11 on text, rounded up."""
_END: Final = -1
_PLACES: Final = 32


class Occurrence(NamedTuple):
    """`text` has at `place` what followed a run of `length` tokens; `growing`: it may go on."""

    text: Sequence[int]
    place: int
    length: int
    growing: bool


class Concordance:
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
            if self._last != _END:
                places = self._after.setdefault(_pair(self._last, token), [])
                places.append(len(self._text) + 1)
                if len(places) >= 2 * _PLACES:
                    del places[:_PLACES]
            self._text.append(token)
            self._last = token

    def occurrences(self, end: Sequence[int], longest: int, most: int) -> Iterator[Occurrence]:
        """Where the last two tokens of `end` or more of them occur with something after them.

        The latest `most` places first; runs longer than `longest` count as that long.
        """
        if len(end) < 2:
            return
        places = self._after.get(_pair(end[-2], end[-1]), ())
        followed = (at for at in reversed(places) if self._is_followed(at))
        for at in islice(followed, most):
            yield Occurrence(self._text, at, self._length(at, end, longest), self._growing)

    def _is_followed(self, place: int) -> bool:
        return place < len(self._text) and self._text[place] != _END

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
