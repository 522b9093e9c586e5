"""Regular expressions for numbers in a range, without exponents and of bounded length.

Knows decimal digits; knows no schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

Digits = list[tuple[int, int]]
"""One range of digits for each place, from the left."""

PLACES = 6
"""Most digits behind the point."""
_FRACTION = f"(\\.[0-9]{{1,{PLACES}}})?"


@lru_cache(512)
def integers(low: Decimal, high: Decimal) -> str:
    """The integers from `low` to `high`; "" where there are none."""
    return "|".join(_exactly(low, high, 0))


@lru_cache(512)
def decimals(low: Decimal, high: Decimal, places: int) -> str:
    """Numbers from `low` to `high` with at most so many digits behind the point; "" for none."""
    return "|".join(part for used in range(places + 1) for part in _exactly(low, high, used))


@lru_cache(512)
def fractions(low: Decimal, high: Decimal) -> str:
    """Numbers from `low` to `high`, which are integers, with any fraction of bounded length."""
    if low > high:
        return ""
    ends = [f"{integers(end, end)}(\\.0)?" for end in dict.fromkeys((low, high))]
    # A fraction leads away from 0, so the end that is further from it has no other one.
    below = integers(max(Decimal(0), -high), -low - 1)
    above = integers(max(Decimal(0), low), high - 1)
    parts = [f"-({below}){_FRACTION}" if below else "", f"({above}){_FRACTION}" if above else ""]
    return "|".join(part for part in (*ends, *parts) if part)


def _exactly(low: Decimal, high: Decimal, places: int) -> Iterator[str]:
    """Numbers with just so many digits behind the point: integers, with the point put in."""
    first = int(low.scaleb(places).to_integral_value(ROUND_CEILING))
    last = int(high.scaleb(places).to_integral_value(ROUND_FLOOR))
    for digits in _between(max(1, -last), -first, places):
        yield "-" + _spelt(digits, places)
    for digits in _between(max(0, first), last, places):
        yield _spelt(digits, places)


def _spelt(digits: Digits, places: int) -> str:
    text = [str(low) if low == high else f"[{low}-{high}]" for low, high in digits]
    point = len(text) - places
    return "".join(text[:point]) + ("\\." + "".join(text[point:]) if places else "")


def _between(low: int, high: int, places: int) -> Iterator[Digits]:
    """The integers from `low` to `high`, 0 or more, with at least one digit before the point."""
    width = places + 1
    while low <= high:
        most = min(high, 10**width - 1)
        if low <= most:
            yield from _same_width(str(low).zfill(width), str(most).zfill(width))
        low = max(low, most + 1)
        width += 1


def _same_width(low: str, high: str) -> Iterator[Digits]:
    """All digit strings from `low` to `high`, which are equally long, as products of ranges."""
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
