"""Tokens that are not to be written. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import Query


@dataclass(frozen=True, slots=True)
class Forbidding:
    """`tokens` are as good as impossible; a slot that nothing else is possible for keeps them."""

    tokens: frozenset[int]

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Without:
        """See `Guidance`."""
        return _Without(sorted(self.tokens))


class _Without:
    """Implements `Guiding`."""

    def __init__(self, tokens: list[int]) -> None:
        self._tokens = tokens

    def asks(self, _query: Query) -> Query | None:
        return None

    def guided(
        self,
        logits: NDArray[np.float32],
        _slots: Slots,
        _answer: NDArray[np.float32] | None,
        _canvas: Canvas,
    ) -> NDArray[np.float32]:
        less = logits.copy()
        less[:, self._tokens] = -np.inf
        left = np.isfinite(less).any(axis=1, keepdims=True)
        return np.where(left, less, logits)
