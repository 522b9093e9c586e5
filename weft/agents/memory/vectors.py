"""Vectors of texts as bytes, and the nearest among many by cosine similarity.

With numpy where it is installed, else in plain Python. Scores are rounded, so that both give the
same order.
"""

from __future__ import annotations

import heapq
import math
import operator
import struct
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from weft.core.errors import ModelOutputError

_CHUNK: Final = 2048
_DIGITS: Final = 6
_MOST_DIMENSIONS: Final = 16_384


class Embedder(Protocol):
    """A model that turns texts into vectors of one length."""

    @property
    def model(self) -> str:
        """The model's name; a memory refuses vectors of another one."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, in order. Raises: `ModelError`."""

    async def aclose(self) -> None:
        """Close its connections."""


def packed(vector: Sequence[float]) -> bytes:
    """`vector` at length 1 (a vector of zeros stays), as little-endian float32.

    Raises: `ModelOutputError` for one that is empty, too long or not finite.
    """
    if not 0 < len(vector) <= _MOST_DIMENSIONS:
        text = f"the embedding has {len(vector):,} numbers, not 1 to {_MOST_DIMENSIONS:,}"
        raise ModelOutputError(text, retryable=False)
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise ModelOutputError("the embedding has a number that is not finite", retryable=False)
    return struct.pack(f"<{len(vector)}f", *(value / (length or 1.0) for value in vector))


def dimension(vector: bytes) -> int:
    """The dimension of a packed vector."""
    return len(vector) // 4


def nearest(query: bytes, rows: Iterable[tuple[int, bytes]], k: int) -> list[tuple[int, float]]:
    """The ids and cosines of the `k` rows nearest to `query`: best first, ties by id.

    All vectors are packed and of one dimension.
    """
    similarities = _similarities(query)
    best: list[tuple[float, int]] = []
    left = iter(rows)
    while chunk := list(islice(left, _CHUNK)):
        scores = similarities([vector for _, vector in chunk])
        scored = zip(scores, chunk, strict=True)
        pairs = [(-round(score, _DIGITS), number) for score, (number, _) in scored]
        best = heapq.nsmallest(k, [*best, *pairs])
    return [(number, -score) for score, number in best]


def _similarities(query: bytes) -> Any:
    """A function from packed vectors to their products with `query`."""
    try:
        import numpy as np
    except ImportError:
        return _Plain(query).similarities

    wanted = np.frombuffer(query, "<f4").astype("f8")

    def similarities(vectors: list[bytes]) -> list[float]:
        table = np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
        return [float(one) for one in table.astype("f8") @ wanted]

    return similarities


class _Plain:
    def __init__(self, query: bytes) -> None:
        self._query = _floats(query)

    def similarities(self, vectors: list[bytes]) -> list[float]:
        return [sum(map(operator.mul, self._query, _floats(vector))) for vector in vectors]


def _floats(vector: bytes) -> array[float]:
    return array("d", struct.unpack(f"<{dimension(vector)}f", vector))
