r"""Regular languages of characters: trees of patterns, bounded numbers, regular expressions.

Expressions are the common subset of ECMA 262 and Python, with search semantics. Expressions that
are not regular or not supported are refused. Classes like `\w` are their ASCII part, so that the
text fits either reading. (Libraries for regex automata have neither the counter of string lengths
nor JSON escapes.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final, Protocol

from weft.decoding.diffusion.structure.languages.automaton import (
    EVERYTHING,
    ByteAutomaton,
    ByteRanges,
    CharRange,
    Nfa,
    complement,
    json_string_ranges,
    merge_ranges,
    utf8_ranges,
)
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton

Encoding = Callable[[tuple[CharRange, ...]], Iterator[ByteRanges]]


class Pattern(Protocol):
    """A regular language of characters."""

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        """Add it to `nfa` after state `at`; returns its end state. Raises: `NotASkeleton`."""


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One character of `ranges`; each counts 1."""

    ranges: tuple[CharRange, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        end = nfa.state()
        for path in encoding(merge_ranges(list(self.ranges))):
            nfa.read(at, path, end, 1)
        return end


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after the other."""

    parts: tuple[Pattern, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        for part in self.parts:
            at = part.lay(nfa, at, encoding)
        return at


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts."""

    parts: tuple[Pattern, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        end = nfa.state()
        for part in self.parts:
            begin = nfa.state()
            nfa.skip(at, begin)
            nfa.skip(part.lay(nfa, begin, encoding), end)
        return end


@dataclass(frozen=True, slots=True)
class Repetition:
    """`part` repeated `least` to `most` times; None: any number."""

    part: Pattern
    least: int = 0
    most: int | None = None

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        for _ in range(self.least):
            at = self.part.lay(nfa, at, encoding)
        end = nfa.state()
        nfa.skip(at, end)
        if self.most is None:
            begin = nfa.state()
            nfa.skip(at, begin)
            after = self.part.lay(nfa, begin, encoding)
            nfa.skip(after, begin)
            nfa.skip(after, end)
            return end
        for _ in range(self.most - self.least):
            at = self.part.lay(nfa, at, encoding)
            nfa.skip(at, end)
        return end


def literal(text: str) -> Concatenation:
    """Exactly `text`."""
    return Concatenation(tuple(CharacterClass(((ord(char), ord(char)),)) for char in text))


def compile_pattern(pattern: Pattern, *, in_string: bool = False) -> ByteAutomaton:
    """The automaton of `pattern`; `in_string`: as text inside a JSON string.

    Raises: `NotASkeleton` when it is too large, or has an empty language.
    """
    nfa = Nfa()
    end = pattern.lay(nfa, nfa.start, json_string_ranges if in_string else utf8_ranges)
    made = nfa.deterministic(end)
    if not made.accepts.any():
        raise NotASkeleton("a pattern fits nothing")
    return made


_DIGITS: Final = 15
_MOST_DIGITS: Final = 40
_FRACTION: Final = 6


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """The range of numbers. None: no bound. `open_*`: without the bound itself."""

    least: Fraction | None = None
    most: Fraction | None = None
    open_least: bool = False
    open_most: bool = False


@dataclass(frozen=True, slots=True)
class NumberPattern:
    """Whole numbers, or decimal fractions, within limits. A `Pattern`."""

    limits: NumberBounds
    whole: bool = True

    def lay(self, nfa: Nfa, at: int, _encoding: Encoding) -> int:
        """See `Pattern`: numbers are ASCII in any encoding. Raises: `NotASkeleton` for none."""
        places = self._places()
        low, high = self._scaled(places)
        if low > high:
            raise NotASkeleton("no number lies between the bounds")
        end = nfa.state()
        if high >= 0:
            _DigitBuilder(nfa, end, places).between(at, max(low, 0), high)
        if low < 0:
            minus = nfa.state()
            nfa.read(at, ((45, 45),), minus)
            _DigitBuilder(nfa, end, places).between(minus, max(1, -high), -low)
        return end

    def _places(self) -> int:
        """Decimal places."""
        if self.whole:
            return 0
        return max(0, min(_FRACTION, _DIGITS - self._longest()))

    def _longest(self) -> int:
        """Digits of the largest bound before the point."""
        bounds = [abs(b) for b in (self.limits.least, self.limits.most) if b is not None]
        longest = max((len(str(floor(bound))) for bound in bounds), default=1)
        if longest > _MOST_DIGITS:
            raise NotASkeleton("a number has a bound of too many digits")
        return longest

    def _scaled(self, places: int) -> tuple[int, int]:
        """Both bounds in units of the last place."""
        unit = 10**places
        free = 10 ** (max(_DIGITS - places, self._longest() + 1) + places) - 1
        low, high = -free, free
        limits = self.limits
        if limits.least is not None:
            low = ceil(limits.least * unit)
            low += limits.open_least and low == limits.least * unit
        if limits.most is not None:
            high = floor(limits.most * unit)
            high -= limits.open_most and high == limits.most * unit
        return low, high


class _DigitBuilder:
    """Adds unsigned numbers with `places` decimal places."""

    def __init__(self, nfa: Nfa, end: int, places: int) -> None:
        self._nfa, self._end, self._places = nfa, end, places

    def between(self, at: int, low: int, high: int) -> None:
        """Add paths from `at` to the end for `low` to `high`, in units of the last place."""
        for length in range(self._places + 1, max(len(str(high)), self._places + 1) + 1):
            least = 0 if length == self._places + 1 else 10 ** (length - 1)
            begin, last = max(low, least), min(high, 10**length - 1)
            if begin <= last:
                self._low, self._high = str(begin).zfill(length), str(last).zfill(length)
                self._states: dict[tuple[int, bool, bool], int] = {}
                self._nfa.skip(at, self._rest(0, True, True))

    def _rest(self, index: int, tight_low: bool, tight_high: bool) -> int:
        """The state before digit `index`, with all digits so far on the lower or upper bound."""
        key = (index, tight_low, tight_high)
        if key in self._states:
            return self._states[key]
        state = self._states[key] = self._nfa.state()
        before_point = len(self._low) - self._places
        if index >= before_point and not (tight_low and self._low[index:].strip("0")):
            self._nfa.skip(state, self._end)
        if index == len(self._low):
            return state
        at = state
        if index == before_point:
            at = self._nfa.state()
            self._nfa.read(state, ((46, 46),), at)
        first = int(self._low[index]) if tight_low else 0
        last = int(self._high[index]) if tight_high else 9
        for digit in range(first, last + 1):
            to = self._rest(index + 1, tight_low and digit == first, tight_high and digit == last)
            self._nfa.read(at, ((48 + digit, 48 + digit),), to)
        return state


_ASCII: Final[tuple[CharRange, ...]] = ((0x20, 0x7E),)
_WORD: Final[tuple[CharRange, ...]] = ((48, 57), (65, 90), (95, 95), (97, 122))
_DIGIT: Final[tuple[CharRange, ...]] = ((48, 57),)
_SPACE: Final[tuple[CharRange, ...]] = ((9, 13), (32, 32))
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
_HEX: Final = {"x": 2, "u": 4}
_SPECIAL: Final = frozenset("|)*+?{^$")
_DEEPEST: Final = 40
_MOST_REPEATS: Final = 1000


def parse_regex(pattern: str) -> Pattern:
    """The language of texts in which `pattern` is found. Raises: `NotASkeleton`."""
    return _RegexParser(pattern).whole()


class _RegexParser:
    """Recursive-descent parser of one expression."""

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
        return Alternation(tuple(branches))

    def _anchored(self) -> Pattern:
        anything = Repetition(CharacterClass(EVERYTHING))
        begins = self._next("^")
        inside = self._sequence()
        ends = self._next("$")
        parts = [inside] if begins else [anything, inside]
        return Concatenation(tuple(parts if ends else [*parts, anything]))

    def _alternation(self) -> Pattern:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused()
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        self._depth -= 1
        return Alternation(tuple(branches))

    def _sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self._at < len(self._text) and self._text[self._at] not in _SPECIAL:
            parts.append(self._repeated(self._single()))
        return Concatenation(tuple(parts))

    def _single(self) -> Pattern:
        char = self._take()
        match char:
            case "(":
                if self._next("?") and not self._next(":"):
                    raise self._refused()
                inside = self._alternation()
                self._expect(")")
                return inside
            case "[":
                return CharacterClass(self._class())
            case ".":
                return CharacterClass(complement(((10, 10),)))
            case "\\":
                ranges, _ = self._escape()
                return CharacterClass(ranges)
            case _:
                return CharacterClass(((ord(char), ord(char)),))

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
        return Repetition(part, least, most)

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

    def _class(self) -> tuple[CharRange, ...]:
        negated = self._next("^")
        ranges: list[CharRange] = []
        certain = True
        first = True
        while first or not self._next("]"):
            first = False
            low, exact = self._member()
            certain = certain and exact
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high, also = self._member()
                if not (exact and also and len(low) == len(high) == 1) or low[0][0] > high[0][1]:
                    raise self._refused()
                low = ((low[0][0], high[0][1]),)
            ranges.extend(low)
        characters = merge_ranges(ranges)
        if not negated:
            return characters
        outside = complement(characters)
        # what a class like \w excludes beyond ASCII depends on the engine
        return outside if certain else _within_ascii(outside)

    def _member(self) -> tuple[tuple[CharRange, ...], bool]:
        char = self._take()
        if char == "\\":
            return self._escape()
        if char == "[":  # nested sets differ between engines
            raise self._refused()
        return ((ord(char), ord(char)),), True

    def _escape(self) -> tuple[tuple[CharRange, ...], bool]:
        """The characters of an escape, and whether all engines agree on them."""
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


def _within_ascii(ranges: tuple[CharRange, ...]) -> tuple[CharRange, ...]:
    low, high = _ASCII[0]
    return tuple((max(a, low), min(b, high)) for a, b in ranges if a <= high and b >= low)


_DATE: Final = (
    r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME: Final = (
    r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_BYTE: Final = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"

FORMATS: Final = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "uuid": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    "email": f"^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@{_LABEL}(\\.{_LABEL})+$",
    "ipv4": f"^{_BYTE}(\\.{_BYTE}){{3}}$",
    "hostname": f"^{_LABEL}(\\.{_LABEL})*$",
}
