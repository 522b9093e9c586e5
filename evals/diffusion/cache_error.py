"""What a cache costs in truth: each prediction beside the one without a cache, on the same text.

Knows no policy: it stands between a loop and an adapter, and changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelAdapter, ModelTraits
from weft.decoding.diffusion.query import Query


@dataclass(slots=True)
class CacheError:
    """Of all predictions so far.

    predictions  slots that were predicted; of `flips` the likeliest token is another
    largest      the largest difference between two logits
    by_pass      the same, of each pass with predictions
    """

    predictions: int = 0
    flips: int = 0
    by_pass: list[float] = field(default_factory=list)

    @property
    def largest(self) -> float:
        return max(self.by_pass, default=0.0)

    @property
    def flipped(self) -> float:
        """The share of predictions whose likeliest token is another."""
        return self.flips / self.predictions if self.predictions else 0.0

    def compare(self, found: NDArray[np.float32], true: NDArray[np.float32]) -> None:
        """Logits [slots, vocabulary] of one pass, with the cache and without."""
        allowed = np.isfinite(true)
        far = np.abs(np.where(allowed, found, 0) - np.where(allowed, true, 0))
        self.by_pass.append(float(far.max()))
        self.predictions += len(true)
        self.flips += int((found.argmax(axis=1) != true.argmax(axis=1)).sum())


class Gauge:
    """Implements `ModelAdapter` over another: all is asked twice, as it is and without a cache.

    Queries that keep nothing, or read other tokens than the canvas holds, are asked once.
    """

    def __init__(self, adapter: ModelAdapter) -> None:
        self.error = CacheError()
        self._adapter = adapter

    @property
    def traits(self) -> ModelTraits:
        return self._adapter.traits

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        answers = self._adapter.forward(queries)
        asked = [
            number
            for number, query in enumerate(queries)
            if len(query.wanted) and not query.scratch and query.ids is None
        ]
        if asked:
            whole = self._adapter.forward([self._whole(queries[number]) for number in asked])
            for number, true in zip(asked, whole, strict=True):
                self.error.compare(answers[number][: len(true)], true)
        return answers

    def forget(self, row: int) -> None:
        self._adapter.forget(row)

    def _whole(self, query: Query) -> Query:
        """The same of all that there is, beside the row's cache."""
        full = self.traits.attention == "full"
        reach = query.canvas.length if full else query.reach
        none = np.empty(0, dtype=np.int64)
        feed = np.arange(reach)
        return replace(query, feed=feed, reach=reach, shadows=none, choice=None, scratch=True)
