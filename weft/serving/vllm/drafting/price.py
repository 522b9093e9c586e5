"""What a drafted token costs, in tokens: learned from how long passes take. Reads no clock.

A pass over n tokens takes b + a n seconds (a straight line through the latest passes), and at the
present speed a seconds are worth so many tokens. A token that is right less often than that costs
more than it saves: few rows can have long drafts, a full batch none but sure ones (goodput, as in
TurboSpec, arXiv 2406.14066).
"""

from __future__ import annotations

from typing import Final

_MEMORY: Final = 0.98
_FEW: Final = 8.0
_OUTLIER: Final = 4.0
_DEAREST: Final = 0.8
_TRUST: Final = 8.0
"""Spread of n, in tokens squared, at which the line counts as much as the guess."""
_ALIKE: Final = 16.0
"""The guess: what a pass takes without any token is what so many tokens add."""


class Price:
    """The least chance that a token must have to be drafted: never below `floor`."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._passes = self._n = self._s = self._nn = self._ns = self._tokens = 0.0

    def observe(self, read: int, seconds: float, written: int) -> None:
        """A pass over `read` tokens wrote `written` ones. Interruptions are left out."""
        if self._passes > _FEW and seconds > _OUTLIER * self._s / self._passes:
            return
        self._passes = _MEMORY * self._passes + 1
        self._n = _MEMORY * self._n + read
        self._s = _MEMORY * self._s + seconds
        self._nn = _MEMORY * self._nn + read * read
        self._ns = _MEMORY * self._ns + read * seconds
        self._tokens = _MEMORY * self._tokens + written

    def least(self) -> float:
        """The chance at which a drafted token pays."""
        if self._passes < _FEW or not self._s > 0.0:
            return self._floor
        return min(max(self._floor, self._token_s() * self._tokens / self._s), _DEAREST)

    def _token_s(self) -> float:
        """a: what one more token adds. Where all passes were alike, a guess."""
        n, s = self._n / self._passes, self._s / self._passes
        spread = max(self._nn / self._passes - n * n, 0.0)
        leaning = self._ns / self._passes - n * s
        slope = (leaning + _TRUST * s / (n + _ALIKE)) / (spread + _TRUST)
        return min(max(slope, 0.0), s / n)
