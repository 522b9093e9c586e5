"""Numbers between two bounds as a language of digits, without exponents and leading zeros.

At most 15 digits where the schema does not ask for more, so that no two of them are one double.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final

from weft.decoding.diffusion.structure.nfa import Nfa
from weft.decoding.diffusion.structure.pattern import Encoding
from weft.decoding.diffusion.structure.refused import NotASkeleton

_DIGITS: Final = 15
_MOST_DIGITS: Final = 40
_FRACTION: Final = 6


@dataclass(frozen=True, slots=True)
class Limits:
    """Where numbers lie. None: no bound. `open_*`: the bound itself is outside."""

    least: Fraction | None = None
    most: Fraction | None = None
    open_least: bool = False
    open_most: bool = False


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers, or decimal fractions, within limits. A `Pattern`."""

    limits: Limits
    whole: bool = True

    def lay(self, nfa: Nfa, at: int, _encoding: Encoding) -> int:
        """Numbers are ASCII in any encoding. Raises: `NotASkeleton` where there are none."""
        places = self._places()
        low, high = self._scaled(places)
        if low > high:
            raise NotASkeleton("no number lies between the bounds")
        end = nfa.state()
        if high >= 0:
            _Digits(nfa, end, places).between(at, max(low, 0), high)
        if low < 0:
            minus = nfa.state()
            nfa.read(at, ((45, 45),), minus)
            _Digits(nfa, end, places).between(minus, max(1, -high), -low)
        return end

    def _places(self) -> int:
        """Digits behind the point."""
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
        """Both ends in units of the last place."""
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


class _Digits:
    """Lays numbers without sign, `places` of whose digits stand behind the point."""

    def __init__(self, nfa: Nfa, end: int, places: int) -> None:
        self._nfa, self._end, self._places = nfa, end, places

    def between(self, at: int, low: int, high: int) -> None:
        """From `at` to the end by any of `low` to `high`, in units of the last place."""
        for length in range(self._places + 1, max(len(str(high)), self._places + 1) + 1):
            least = 0 if length == self._places + 1 else 10 ** (length - 1)
            begin, last = max(low, least), min(high, 10**length - 1)
            if begin <= last:
                self._low, self._high = str(begin).zfill(length), str(last).zfill(length)
                self._known: dict[tuple[int, bool, bool], int] = {}
                self._nfa.skip(at, self._rest(0, True, True))

    def _rest(self, index: int, tight_low: bool, tight_high: bool) -> int:
        """The state before digit `index`, with all digits so far on the lower or upper bound."""
        key = (index, tight_low, tight_high)
        if key in self._known:
            return self._known[key]
        state = self._known[key] = self._nfa.state()
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
