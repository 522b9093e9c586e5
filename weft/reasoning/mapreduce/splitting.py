"""Cuts a text into stretches of so many tokens at most, where a reader would. Knows no tokenizer.

The stretches are the text: put together they are all of it, in order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Final

Measure = Callable[[str], Awaitable[int]]
"""How many tokens a text has."""

_CHARS_PER_TOKEN: Final = 5.0
_SHRINK: Final = 0.95
_BOUNDARIES: Final = tuple(
    map(re.compile, (r"\n[ \t]*\n+", r"\n", r"[.!?][\"')\]]?\s+|[\u3002\uff01\uff1f]", r"\s+"))
)
"""Ends of paragraphs, lines, sentences, words; the first kind that is found is taken."""
_JOINER: Final = "\u200d"


async def split(text: str, limit: int, measure: Measure) -> tuple[tuple[int, int], ...]:
    """The `(start, end)` of each stretch of `text`, in characters.

    None has more than `limit` tokens (at least 1), unless a single character has. Text is measured
    about twice, in pieces.
    """
    spans: list[tuple[int, int]] = []
    start, rate = 0, _CHARS_PER_TOKEN
    while start < len(text):
        end, tokens = await _cut(text, start, limit, measure, max(1, int(limit * rate)))
        spans.append((start, end))
        if end < len(text):
            rate = min(_CHARS_PER_TOKEN, 1.1 * (end - start) / max(1, tokens))
        start = end
    return tuple(spans)


async def _cut(text: str, start: int, limit: int, measure: Measure, chars: int) -> tuple[int, int]:
    """Where the stretch from `start` ends, about `chars` further at most, and its tokens."""
    while True:
        end = boundary(text, start, start + chars)
        tokens = await measure(text[start:end])
        if tokens <= limit or end == start + 1:
            return end, tokens
        fitting = int((end - start) * _SHRINK * limit / tokens)
        chars = max(1, min(end - start - 1, fitting))


def boundary(text: str, start: int, end: int) -> int:
    """The best place to cut `text` in the second half of `start` to `end`, after `start`."""
    if end >= len(text):
        return len(text)
    half = start + (end - start) // 2
    for kind in _BOUNDARIES:
        ends = [found.end() for found in kind.finditer(text, half, end)]
        if ends and ends[-1] > start:
            return ends[-1]
    return _whole_character(text, start, end)


def _whole_character(text: str, start: int, end: int) -> int:
    """`end`, moved back out of a character that is written as several."""
    cut = end
    while cut > start + 1 and _continues(text, cut):
        cut -= 1
    return cut if not _continues(text, cut) else end


def _continues(text: str, place: int) -> bool:
    joined = text[place] == _JOINER or text[place - 1] == _JOINER
    return joined or unicodedata.combining(text[place]) != 0
