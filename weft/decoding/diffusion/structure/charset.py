"""Ranges of characters as sequences of byte ranges: UTF-8, and UTF-8 inside a JSON string."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

Range = tuple[int, int]
"""First and last code point or byte, both included."""
Bytes = tuple[Range, ...]
"""Byte ranges that follow one another."""

EVERYTHING: Final[tuple[Range, ...]] = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""All characters but surrogates."""
_LENGTHS: Final = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_ESCAPES: Final = {
    8: b"\\b",
    9: b"\\t",
    10: b"\\n",
    12: b"\\f",
    13: b"\\r",
    34: b'\\"',
    92: b"\\\\",
}


def merged(ranges: list[Range]) -> tuple[Range, ...]:
    """Ascending, without overlaps and surrogates."""
    out: list[Range] = []
    for low, high in sorted(part for one in ranges for part in _without_surrogates(one)):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def complement(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """All other characters. `ranges` as `merged` makes them."""
    rest, begin = [], 0
    for low, high in ranges:
        if begin < low:
            rest.append((begin, low - 1))
        begin = high + 1
    if begin <= 0x10FFFF:
        rest.append((begin, 0x10FFFF))
    return merged(rest)


def plain(ranges: tuple[Range, ...]) -> Iterator[Bytes]:
    """The UTF-8 of any character of `ranges`."""
    for low, high in ranges:
        for end in _LENGTHS:
            if low <= min(high, end):
                yield from _aligned(low, min(high, end))
                low = end + 1


def in_json_string(ranges: tuple[Range, ...]) -> Iterator[Bytes]:
    """The same inside a JSON string: escaped where it has to be; other controls are left out."""
    cut = [(low, high) for low, high in ranges]
    for code, escape in _ESCAPES.items():
        if any(low <= code <= high for low, high in ranges):
            yield tuple((byte, byte) for byte in escape)
        cut = [part for one in cut for part in _without(one, code)]
    yield from plain(tuple((max(low, 32), high) for low, high in cut if high >= 32))


def _without_surrogates(one: Range) -> list[Range]:
    low, high = one
    parts = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    return [(a, b) for a, b in parts if a <= b]


def _without(one: Range, code: int) -> list[Range]:
    low, high = one
    parts = [(low, min(high, code - 1)), (max(low, code + 1), high)]
    return [(a, b) for a, b in parts if a <= b]


def _aligned(low: int, high: int) -> Iterator[Bytes]:
    """Of characters of one encoded length: cut until each byte ranges on its own."""
    for shift in (6, 12, 18):
        mask = (1 << shift) - 1
        if low & ~mask == high & ~mask:
            continue
        if low & mask:
            yield from _aligned(low, low | mask)
            yield from _aligned((low | mask) + 1, high)
            return
        if high & mask != mask:
            yield from _aligned(low, (high & ~mask) - 1)
            yield from _aligned(high & ~mask, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
