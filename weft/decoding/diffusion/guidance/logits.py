"""Guidance of logits: away from what would be written without a prompt, and forbidden tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import Query


@dataclass(frozen=True, slots=True)
class ClassifierFreeGuidance:
    """LLaDA's: logits u + (scale + 1) (l - u), where u are those with all of the prompt masked.

    `scale` above 0. Raises: `ValueError` for another.
    """

    scale: float

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < np.inf:
            raise ValueError(f"a scale of {self.scale}")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _ClassifierFreeSession:
        """See `GuidancePolicy`. Raises: `CapabilityError` for a model without a mask."""
        if traits.mask_id is None:
            raise CapabilityError(
                "a model without a mask cannot be asked what it would write without a prompt",
                hint="leave guidance out",
            )
        return _ClassifierFreeSession(self.scale, traits.mask_id)


class _ClassifierFreeSession:
    """Implements `GuidanceSession`."""

    def __init__(self, scale: float, mask_id: int) -> None:
        self._scale, self._mask = scale, mask_id

    def asks(self, query: Query) -> Query:
        """The same query with a masked prompt, which leaves the row's cache alone."""
        canvas = query.canvas
        ids = canvas.ids[: query.reach].copy()
        ids[: canvas.first] = self._mask
        return Query(
            canvas,
            np.arange(query.reach),
            query.wanted,
            query.reach,
            ids=ids,
            scratch=True,
            kind="unconditional",
        )

    def guided(
        self,
        logits: NDArray[np.float32],
        _slots: Slots,
        answer: NDArray[np.float32] | None,
        _canvas: Canvas,
    ) -> NDArray[np.float32]:
        """Tokens that either pass forbids keep their logits."""
        assert answer is not None
        both = np.isfinite(logits) & np.isfinite(answer)
        far = np.where(both, logits, 0.0) - np.where(both, answer, 0.0)
        return np.where(both, logits + np.float32(self._scale) * far, logits)


@dataclass(frozen=True, slots=True)
class ForbiddenTokens:
    """Makes `tokens` impossible, except in slots where no other token is possible."""

    tokens: frozenset[int]

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _ForbiddenTokensSession:
        return _ForbiddenTokensSession(sorted(self.tokens))


class _ForbiddenTokensSession:
    """Implements `GuidanceSession`."""

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
