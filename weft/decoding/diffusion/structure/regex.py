"""Regular expressions as patterns: the common ground of ECMA 262 and Python, searched as they are.

What has no place in a regular language, or is not understood, is refused. Classes like `\\w` are
read as their ASCII part: what is written fits either reading.
"""

from __future__ import annotations

from typing import Final

from weft.decoding.diffusion.structure.charset import EVERYTHING, Range, complement, merged
from weft.decoding.diffusion.structure.pattern import Chars, Either, Pattern, Repeat, Sequence
from weft.decoding.diffusion.structure.refused import NotASkeleton

_ASCII: Final[tuple[Range, ...]] = ((0x20, 0x7E),)
_WORD: Final[tuple[Range, ...]] = ((48, 57), (65, 90), (95, 95), (97, 122))
_DIGIT: Final[tuple[Range, ...]] = ((48, 57),)
_SPACE: Final[tuple[Range, ...]] = ((9, 13), (32, 32))
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
_HEX: Final = {"x": 2, "u": 4}
_SPECIAL: Final = frozenset("|)*+?{^$")
_DEEPEST: Final = 40
_MOST_REPEATS: Final = 1000


def searched(pattern: str) -> Pattern:
    """The texts in which `pattern` is found. Raises: `NotASkeleton`."""
    return _Reader(pattern).whole()


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Pattern:
        branches = [self._anchored()]
        while self._next("|"):
            branches.append(self._anchored())
        if self._at < len(self._text):
            raise self._refused()
        return Either(tuple(branches))

    def _anchored(self) -> Pattern:
        anything = Repeat(Chars(EVERYTHING))
        begins = self._next("^")
        inside = self._sequence()
        ends = self._next("$")
        parts = [inside] if begins else [anything, inside]
        return Sequence(tuple(parts if ends else [*parts, anything]))

    def _either(self) -> Pattern:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused()
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        self._depth -= 1
        return Either(tuple(branches))

    def _sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self._at < len(self._text) and self._text[self._at] not in _SPECIAL:
            parts.append(self._repeated(self._single()))
        return Sequence(tuple(parts))

    def _single(self) -> Pattern:
        char = self._take()
        match char:
            case "(":
                if self._next("?") and not self._next(":"):
                    raise self._refused()
                inside = self._either()
                self._expect(")")
                return inside
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(complement(((10, 10),)))
            case "\\":
                ranges, _ = self._escape()
                return Chars(ranges)
            case _:
                return Chars(((ord(char), ord(char)),))

    def _repeated(self, part: Pattern) -> Pattern:
        if self._next("*"):
            least, most = 0, None
        elif self._next("+"):
            least, most = 1, None
        elif self._next("?"):
            least, most = 0, 1
        elif self._peek() == "{":
            least, most = self._counts()
        else:
            return part
        self._next("?")  # the language of a lazy repetition is the same
        if self._peek() in ("+", "*", "?", "{"):
            raise self._refused()
        return Repeat(part, least, most)

    def _counts(self) -> tuple[int, int | None]:
        inside, closed, _ = self._text[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        fine = closed and low.isdecimal() and low.isascii()
        if not fine or (high and not (high.isdecimal() and high.isascii())) or len(inside) > 12:
            raise self._refused()
        self._at += len(inside) + 2
        least = int(low)
        most = least if not comma else int(high) if high else None
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self._refused()
        return least, most

    def _class(self) -> tuple[Range, ...]:
        negated = self._next("^")
        ranges: list[Range] = []
        known = True
        first = True
        while first or not self._next("]"):
            first = False
            low, exact = self._member()
            known = known and exact
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high, also = self._member()
                if not (exact and also and len(low) == len(high) == 1) or low[0][0] > high[0][1]:
                    raise self._refused()
                low = ((low[0][0], high[0][1]),)
            ranges.extend(low)
        found = merged(ranges)
        if not negated:
            return found
        outside = complement(found)
        # what a class like \w leaves out beyond ASCII depends on who reads it
        return outside if known else _within_ascii(outside)

    def _member(self) -> tuple[tuple[Range, ...], bool]:
        char = self._take()
        if char == "\\":
            return self._escape()
        if char == "[":  # nested sets mean different things in different engines
            raise self._refused()
        return ((ord(char), ord(char)),), True

    def _escape(self) -> tuple[tuple[Range, ...], bool]:
        """The characters of an escape, and whether all readers agree on them."""
        char = self._take()
        if char.lower() in _CLASSES:
            inside = _CLASSES[char.lower()]
            return (inside if char.islower() else _within_ascii(complement(inside))), False
        if char in _HEX:
            digits = self._text[self._at : self._at + _HEX[char]]
            self._at += _HEX[char]
            if len(digits) < _HEX[char] or not all(d in "0123456789abcdefABCDEF" for d in digits):
                raise self._refused()
            code = int(digits, 16)
        elif char in _CONTROLS:
            code = _CONTROLS[char]
        elif char.isalnum():
            raise self._refused()
        else:
            code = ord(char)
        return ((code, code),), True

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, char: str) -> bool:
        found = self._peek() == char
        self._at += found
        return found

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise self._refused()
        self._at += 1
        return char

    def _expect(self, char: str) -> None:
        if not self._next(char):
            raise self._refused()

    def _refused(self) -> NotASkeleton:
        return NotASkeleton(f"the pattern {self._text[:60]!r} is not understood at {self._at}")


def _within_ascii(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    low, high = _ASCII[0]
    return tuple((max(a, low), min(b, high)) for a, b in ranges if a <= high and b >= low)
