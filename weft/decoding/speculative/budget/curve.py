"""What a pass of the target over n tokens takes, in passes over one. Measured, never assumed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping


class Curve:
    """v(n) with v(1) = 1, from `measured` times by the number of tokens; straight in between.

    A longer pass never counts as a shorter one, whatever the noise. Beyond the last measurement it
    goes on as steeply as between the last two.

    Raises: `ValueError` without a time for one token, or for times that are none.
    """

    def __init__(self, measured: Mapping[int, float]) -> None:
        if 1 not in measured or any(n < 1 or not t > 0.0 for n, t in measured.items()):
            raise ValueError("a curve needs the time of a pass over one token, and times above 0")
        self._at = sorted(measured)
        self._values: list[float] = []
        for tokens in self._at:
            ratio = measured[tokens] / measured[1]
            self._values.append(max([ratio, *self._values[-1:]]))

    def __call__(self, tokens: int) -> float:
        """v(`tokens`). Raises: `ValueError` below one token."""
        if tokens < 1:
            raise ValueError(f"no pass reads {tokens} tokens")
        right = bisect_left(self._at, tokens)
        if right < len(self._at) and self._at[right] == tokens:
            return self._values[right]
        if len(self._at) == 1:
            return self._values[0]
        right = min(right, len(self._at) - 1)
        (a, b), (low, high) = self._at[right - 1 : right + 1], self._values[right - 1 : right + 1]
        return low + (high - low) * (tokens - a) / (b - a)
