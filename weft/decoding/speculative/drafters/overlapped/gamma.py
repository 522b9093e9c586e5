"""How many tokens the draft model writes while the target makes one pass (PEARL, 2408.11850)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_MEMORY: Final = 8.0
"""How many measurements a running mean remembers."""


class Gamma:
    """The target's time over the draft's, rounded: neither then waits for the other.

    At least 1, at most `longest`; `start` until both were measured. With `adaptive` off it stays
    there. `now` tells seconds.
    """

    def __init__(
        self, start: int, longest: int, now: Callable[[], float], *, adaptive: bool = True
    ) -> None:
        self._start = min(start, longest)
        self._longest = longest
        self._now = now
        self._adaptive = adaptive
        self._target = _Mean()
        self._draft = _Mean()
        self._began: float | None = None

    @property
    def length(self) -> int:
        """Tokens for the next round."""
        if not self._adaptive or not self._target.value or not self._draft.value:
            return self._start
        return max(1, min(self._longest, round(self._target.value / self._draft.value)))

    def target_begins(self) -> None:
        """The target was given its draft."""
        self._began = self._now()

    def target_ended(self) -> None:
        """The target wants the next draft."""
        if self._began is not None:
            self._target.add(self._now() - self._began)
            self._began = None

    def interrupted(self) -> None:
        """What goes on now is no single pass of the target."""
        self._began = None

    def drafted(self, tokens: int, seconds: float) -> None:
        """The draft model wrote so many tokens within so long a time."""
        if tokens:
            self._draft.add(seconds / tokens)


class _Mean:
    """A running mean that forgets."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, measured: float) -> None:
        rate = 1.0 / _MEMORY if self.value else 1.0
        self.value += rate * (measured - self.value)
