"""How many slots are due in a step, when it is not the predictions that say so.

Knows no predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Pacing(Protocol):
    """A pace on its way through one window."""

    def due(self, left: int) -> int:
        """Of `left` open slots, 1 to `left`."""


class Pace(Protocol):
    """Settings of a pace."""

    def begin(self, slots: int) -> Pacing:
        """For a window with so many open slots."""

    def most_forwards(self, slots: int) -> int:
        """Steps after which all of them were due."""


@dataclass(frozen=True, slots=True)
class Every:
    """The same `count` in each step."""

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"{self.count} slots a step")

    def begin(self, _slots: int) -> Every:
        return self

    def due(self, left: int) -> int:
        return min(self.count, left)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.count)


@dataclass(frozen=True, slots=True)
class Split:
    """All of a window in `steps` steps of equal size, the larger ones first (LLaDA)."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"{self.steps} steps")

    def begin(self, slots: int) -> _Parts:
        share, more = divmod(slots, self.steps)
        return _Parts([share + (step < more) for step in range(self.steps)])

    def most_forwards(self, slots: int) -> int:
        return min(self.steps, slots)


class _Parts:
    def __init__(self, parts: list[int]) -> None:
        self._parts = iter(parts)

    def due(self, left: int) -> int:
        return min(left, max(1, next(self._parts, 1)))


@dataclass(frozen=True, slots=True)
class Fading:
    """Dream's: time falls evenly from 1 to `last` in `steps`, and from t to s the share 1 - s/t of
    what is open is due, rounded down; all of it in the last step. Without `steps` there are as
    many as slots.

    A step in which nothing is due is passed over, since the next prediction would be the same
    again; with `least` 1 something is due in all of them.
    """

    steps: int = 0
    last: float = 1e-3
    least: int = 0

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0.0 < self.last < 1.0 or self.least not in (0, 1):
            raise ValueError(f"no pace with {self}")

    def shares(self, slots: int) -> list[float]:
        """Of each step, for a window with so many open slots."""
        times = np.linspace(1.0, self.last, (self.steps or max(1, slots)) + 1)
        return [*(1.0 - times[1:-1] / times[:-2]).tolist(), 1.0]

    def begin(self, slots: int) -> _Shares:
        return _Shares(self.shares(slots), self.least)

    def most_forwards(self, slots: int) -> int:
        return min(self.steps or slots, slots)


class _Shares:
    def __init__(self, shares: list[float], least: int) -> None:
        self._shares = iter(shares)
        self._least = least

    def due(self, left: int) -> int:
        for share in self._shares:
            count = max(int(left * share), self._least)
            if count:
                return count
        return left
