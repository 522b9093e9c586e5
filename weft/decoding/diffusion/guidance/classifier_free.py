"""Classifier-free guidance: away from what would be written without a prompt.

A second reading of the whole text in each pass. Knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import Query


@dataclass(frozen=True, slots=True)
class ClassifierFree:
    """LLaDA's: logits u + (scale + 1) (l - u), where u are those with all of the prompt masked.

    `scale` above 0. Raises: `ValueError` for another.
    """

    scale: float

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < np.inf:
            raise ValueError(f"a scale of {self.scale}")

    def begin(self, _canvas: Canvas, traits: Traits) -> _Contrasting:
        """See `Guidance`. Raises: `CapabilityError` for a model without a mask."""
        if traits.mask_id is None:
            raise CapabilityError(
                "a model without a mask cannot be asked what it would write without a prompt",
                hint="leave guidance out",
            )
        return _Contrasting(self.scale, traits.mask_id)


class _Contrasting:
    """Implements `Guiding`."""

    def __init__(self, scale: float, mask_id: int) -> None:
        self._scale, self._mask = scale, mask_id

    def asks(self, query: Query) -> Query:
        """All that is seen, read beside the row's cache."""
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
        """What either forbids is left as the prompt has it."""
        assert answer is not None
        both = np.isfinite(logits) & np.isfinite(answer)
        far = np.where(both, logits, 0.0) - np.where(both, answer, 0.0)
        return np.where(both, logits + np.float32(self._scale) * far, logits)
