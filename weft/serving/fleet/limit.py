"""How many calls may run on one replica: fewer after an overload, then slowly more again.

Additive increase, multiplicative decrease (Chiu and Jain 1989), as TCP finds a path's capacity.
"""

from __future__ import annotations

import math


class Limit:
    """A bound that follows what a replica bears, never above `ceiling` nor below one call."""

    def __init__(self, ceiling: int | None) -> None:
        self._ceiling = math.inf if ceiling is None else float(ceiling)
        self._value = self._ceiling

    @property
    def calls(self) -> float:
        """Most calls at once; infinite without a bound."""
        return self._value

    def overloaded(self, running: int) -> None:
        """The replica refused one of `running` calls: half of them is enough for now."""
        self._value = max(1.0, min(self._value, running) / 2)

    def succeeded(self) -> None:
        """A call ended well: one more call may run for every full round of them."""
        self._value = min(self._ceiling, self._value + 1 / self._value)
