"""A text as a sparse vector of bounded size: hashed words, pairs of words, and its shape.

Knows no language. The hashing trick (Weinberger et al. 2009): indexes and signs come from a hash,
so there is no vocabulary to keep, and equal texts have equal vectors on every machine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final
from zlib import crc32

_LONGEST: Final = 20_000
_WORD: Final = re.compile(r"\d+|\w+|[^\w\s]")
Vector = Mapping[int, float]


def features(text: str, dimensions: int) -> Vector:
    """The vector of `text`, of length 1; indexes are below `dimensions`."""
    text = text[:_LONGEST]
    words = ["#" if word.isdigit() else word.lower() for word in _WORD.findall(text)]
    counts = Counter([*words, *map(" ".join, pairwise(words)), *_shape(text)])
    vector: dict[int, float] = {}
    for name, count in counts.items():
        hashed = crc32(name.encode("utf-8", "surrogatepass"))
        sign = 1.0 if hashed & 0x80000000 else -1.0
        index = hashed % dimensions
        vector[index] = vector.get(index, 0.0) + sign * math.log1p(count)
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {index: value / length for index, value in vector.items() if value}


def _shape(text: str) -> Iterator[str]:
    """How long it is, and how much of it is figures, signs and capitals; in steps."""
    size = max(1, len(text))
    yield f"\0length {len(text).bit_length()}"
    for name, count in (
        ("figures", sum(c.isdigit() for c in text)),
        ("signs", sum(not c.isalnum() and not c.isspace() for c in text)),
        ("capitals", sum(c.isupper() for c in text)),
        ("lines", text.count("\n")),
    ):
        yield f"\0{name} {int(math.sqrt(count / size) * 10)}"
