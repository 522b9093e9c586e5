"""The delayed cache of dKV-Cache (arXiv 2505.15781): a token's keys are kept one step after it.

They move most in the step in which the token is written, and little from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.caches.keys import Keys
from weft.decoding.diffusion.caches.masking import Masking
from weft.decoding.diffusion.canvas import Bits, Canvas


@dataclass(frozen=True, slots=True)
class Delayed:
    """Implements `CachePolicy`: undecided slots are read in every pass, the others once decided.

    refresh  all is read every so many steps; None: never

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = 8

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"all cannot be read every {self.refresh} steps")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.refresh == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: Traits) -> Masking:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: Keys) -> Bits | None:
            due = self.refresh is not None and canvas.step - keys.whole_at >= self.refresh
            return None if due else canvas.undecided.copy()

        return Masking(again, traits)
