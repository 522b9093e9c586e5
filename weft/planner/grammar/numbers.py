"""Regular expressions for JSON numbers in a range, of bounded length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

Digits = list[tuple[int, int]]
"""A range for each digit, from the left."""

_ZERO: Final = Decimal(0)
_LEAST_EXPONENT: Final = -324
_LARGEST: Final = Decimal("1.7976931348623157e308")
_WHOLE_FROM: Final = 16
"""The exponent from which Python writes a float with an exponent, and from which it is whole."""


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from `low` to `high`, without an end that is `open`; None: unbounded."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def negated(self) -> NumberRange:
        low, high = (None if end is None else -end for end in (self.high, self.low))
        return NumberRange(low, high, self.high_open, self.low_open)

    @property
    def above_zero(self) -> NumberRange:
        if self.low is not None and self.low >= 0:
            return self
        return replace(self, low=_ZERO, low_open=False)

    @property
    def scale(self) -> int:
        """The most digits of a bound after the point."""
        return max([places(end) for end in (self.low, self.high) if end is not None], default=0)


_Spelling: TypeAlias = Callable[[NumberRange], str]


@lru_cache(512)
def integers(within: NumberRange, digits: int) -> str:
    """Whole numbers of at most `digits` digits, written without a point; "" for none.

    Bounds with more digits extend the limit.
    """
    return _signed(within, lambda one: _plain(_rounded(one), digits, 0), zero=False)


@lru_cache(512)
def whole(within: NumberRange, digits: int) -> str:
    """Whole numbers in all spellings of JSON: `3`, `3.0`, `3e+20`."""
    plain = integers(within, digits)
    spelled = [rf"({plain})(\.0)?"] if plain else []
    large = _signed(within, lambda one: _scientific(one, _WHOLE_FROM, _WHOLE_FROM))
    return "|".join([*spelled, *([large] if large else [])])


@lru_cache(512)
def numbers(within: NumberRange, digits: int, decimals: int) -> str:
    """Numbers with at most so many digits before and after the point, or with an exponent."""
    patterns = (
        _signed(within, lambda one: _plain(one, digits, max(decimals, one.scale))),
        _signed(within, lambda one: _scientific(one, _LEAST_EXPONENT, decimals)),
    )
    return "|".join(filter(None, patterns))


@lru_cache(512)
def rounded(within: NumberRange, digits: int, decimals: int) -> str:
    """Numbers with at most so many digits after the point, without an exponent."""
    return _signed(within, lambda one: "|".join(_short(one, digits, decimals)))


def places(value: Decimal) -> int:
    """The number of digits after the point."""
    exponent = value.normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _signed(within: NumberRange, spelled: _Spelling, *, zero: bool = True) -> str:
    """Both signs of the range. `zero`: zero may have a sign."""
    found = []
    negative = within.negated
    if negative.high is None or negative.high >= 0:
        below = negative.above_zero
        if not zero and below.low == 0:
            below = replace(below, low=Decimal(1), low_open=False)
        if regex := spelled(below):
            found.append(f"-({regex})")
    if (within.high is None or within.high >= 0) and (regex := spelled(within.above_zero)):
        found.append(f"({regex})")
    return "|".join(found)


def _rounded(within: NumberRange) -> NumberRange:
    """The range of whole numbers: with whole, closed ends."""
    low, high = within.low, within.high
    if low is not None:
        first = low.to_integral_value("ROUND_CEILING")
        low = first + 1 if within.low_open and first == low else first
    if high is not None:
        last = high.to_integral_value("ROUND_FLOOR")
        high = last - 1 if within.high_open and last == high else last
    return NumberRange(low, high)


def _plain(within: NumberRange, digits: int, decimals: int) -> str:
    """Numbers of a non-negative range, written without an exponent."""
    return "|".join(
        [*_short(within, digits, min(decimals, within.scale)), *_long(within, digits, decimals)]
    )


def _short(within: NumberRange, digits: int, decimals: int) -> Iterator[str]:
    """Those with at most `decimals` digits after the point."""
    for used in range(decimals + 1):
        first, last = _ends(within, used)
        yield from _between(first, last, used, digits)


def _long(within: NumberRange, digits: int, decimals: int) -> Iterator[str]:
    """Those with more digits after the point than the bounds have."""
    scale = within.scale
    if decimals <= scale:
        return
    point = "" if scale else r"\."
    more = f"{point}[0-9]{{1,{decimals - scale}}}"
    first, last = _ends(within, scale)
    if within.low is not None and within.low_open:  # just above an open end
        end = int(within.low.scaleb(scale))
        if within.high is None or within.low < within.high:
            tail = f"{point}[0-9]{{0,{decimals - scale - 1}}}[1-9]"
            yield from (f"{one}{tail}" for one in _between(end, end, scale, digits))
    if within.high is not None:
        end = int(within.high.scaleb(scale))
        if not within.high_open and first <= end:
            zeros = f"{point}0{{1,{decimals - scale}}}"
            yield from (f"{one}{zeros}" for one in _between(end, end, scale, digits))
        last = end - 1
    yield from (f"({one}){more}" for one in _between(first, last, scale, digits))


def _ends(within: NumberRange, used: int) -> tuple[int, int | None]:
    """The least and the greatest number with `used` digits after the point, without the point."""
    assert within.low is not None
    low = within.low.scaleb(used)
    first = int(low.to_integral_value("ROUND_CEILING"))
    first += within.low_open and first == low
    if within.high is None:
        return first, None
    high = within.high.scaleb(used)
    last = int(high.to_integral_value("ROUND_FLOOR"))
    return first, last - (within.high_open and last == high)


def _scientific(within: NumberRange, least: int, decimals: int) -> str:
    """Numbers of a non-negative range with an exponent of `least` or more."""
    assert within.low is not None
    low, high = within.low, _LARGEST if within.high is None else min(within.high, _LARGEST)
    if high <= 0 or low > high:
        return ""
    first = max(least, low.adjusted() if low else least)
    last = high.adjusted()
    found = []
    # The bounds restrict only the first and the last power of ten.
    inner = range(first + (low > 0), last)
    if inner:
        mantissa = f"[1-9](\\.[0-9]{{1,{decimals}}})?" if decimals else "[1-9]"
        exponents = [_exponents(inner.start, -1), _exponents(max(0, inner.start), inner[-1])]
        if inner[-1] < 0:
            exponents = [_exponents(inner.start, inner[-1])]
        found.append(f"{mantissa}[eE]({'|'.join(filter(None, exponents))})")
    for exponent in sorted({first, last} - {*inner}):
        if exponent >= least:
            found += _of_one_power(within, high, exponent, decimals)
    return "|".join(found)


def _of_one_power(
    within: NumberRange, high: Decimal, exponent: int, decimals: int
) -> Iterator[str]:
    assert within.low is not None
    low, low_open, top, top_open = Decimal(1), False, Decimal(10), True
    if within.low.scaleb(-exponent) >= 1:
        low, low_open = within.low.scaleb(-exponent), within.low_open
    if high.scaleb(-exponent) < top:
        top, top_open = high.scaleb(-exponent), within.high_open and high == within.high
    mantissas = NumberRange(low, top, low_open, top_open)
    regex = _plain(mantissas, 1, max(decimals, mantissas.scale))
    if low <= top and regex:
        yield f"({regex})[eE]({_exponents(exponent, exponent)})"


def _exponents(first: int, last: int) -> str:
    """Exponents of one sign, as JSON and Python write them: `5`, `+5`, `+05`, `-05`."""
    if first > last:
        return ""
    sign = "-" if last < 0 else r"\+?"
    ends = (-last, -first) if last < 0 else (first, last)
    return f"{sign}0?({'|'.join(_between(*ends, 0, 3))})"


def _between(low: int, high: int | None, places: int, digits: int) -> Iterator[str]:
    """The integers from `low` to `high`, 0 or more, with a point before the last `places`."""
    width = max(places + 1, len(str(low)))
    if high is None:
        yield from _between(low, 10**width - 1, places, digits)
        if width - places < digits:
            fraction = f"\\.[0-9]{{{places}}}" if places else ""
            yield f"[1-9][0-9]{{{width - places},{digits - 1}}}{fraction}"
        return
    while low <= high:
        most = min(high, 10**width - 1)
        if low <= most:
            for one in _same_width(str(low).zfill(width), str(most).zfill(width)):
                yield _spelled(one, places)
        low = max(low, most + 1)
        width += 1


def _spelled(digits: Digits, places: int) -> str:
    text = [str(low) if low == high else f"[{low}-{high}]" for low, high in digits]
    point = len(text) - places
    return "".join(text[:point]) + ("\\." + "".join(text[point:]) if places else "")


def _same_width(low: str, high: str) -> Iterator[Digits]:
    """The digit strings from `low` to `high`, of equal length, as products of ranges."""
    if not low:
        yield []
        return
    first, last = int(low[0]), int(high[0])
    rest = len(low) - 1
    if first == last:
        yield from ([(first, first), *tail] for tail in _same_width(low[1:], high[1:]))
        return
    lower, upper = low[1:] != "0" * rest, high[1:] != "9" * rest
    if lower:
        yield from ([(first, first), *tail] for tail in _same_width(low[1:], "9" * rest))
    if first + lower <= last - upper:
        yield [(first + lower, last - upper), *[(0, 9)] * rest]
    if upper:
        yield from ([(last, last), *tail] for tail in _same_width("0" * rest, high[1:]))
