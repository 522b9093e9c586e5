"""When a supervisor lets a drafted token pass, by its own prediction there. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Rule(Protocol):
    """Judges one token."""

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        """`logits` [vocabulary] are the supervisor's for the place of `token`."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The token that the supervisor would write itself, the lowest id of equals."""

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        """See `Rule`."""
        return int(logits.argmax()) == token


@dataclass(frozen=True, slots=True)
class Relative:
    """One of its `top` likeliest tokens, at least `share` times as likely as the likeliest
    (FlashDLM, arXiv 2505.21467).

    Raises: `ValueError` for values out of range.
    """

    top: int = 2
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.top < 1 or not 0.0 <= self.share <= 1.0:
            raise ValueError(f"nothing passes {self}")

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        """See `Rule`."""
        likelier = int((logits > logits[token]).sum())
        ratio = np.exp(np.float64(logits[token]) - np.float64(logits.max()))
        return likelier < self.top and bool(ratio >= self.share)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A threshold that falls where the supervisor itself is unsure: `share` times exp(-entropy),
    at most `most` (the form of typical acceptance, arXiv 2401.10774).

    Raises: `ValueError` for values out of range.
    """

    most: float = 0.3
    share: float = 0.6

    def __post_init__(self) -> None:
        if not 0.0 <= self.most <= 1.0 or not 0.0 <= self.share <= 1.0:
            raise ValueError(f"nothing passes {self}")

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        """See `Rule`."""
        weights = np.exp(logits.astype(np.float64) - logits.max())
        law = weights / weights.sum()
        entropy = -float((law[law > 0] * np.log(law[law > 0])).sum())
        return bool(law[token] >= min(self.most, self.share * np.exp(-entropy)))
