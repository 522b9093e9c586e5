"""When a crashed replica may start again. Pure: knows no clock and no process."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Restarts:
    """Exponential back-off, and an end to it: at most `most` starts within any `window_s`.

    `after` is told of each crash with the time in seconds (any clock that only goes forward).
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    most: int = 5
    window_s: float = 600.0
    _crashes: deque[float] = field(default_factory=deque)

    def after(self, now_s: float) -> float | None:
        """Seconds to wait before the next start; None: give up."""
        while self._crashes and now_s - self._crashes[0] > self.window_s:
            self._crashes.popleft()
        if len(self._crashes) >= self.most:
            return None
        wait_s = min(self.longest_s, self.first_s * 2.0 ** len(self._crashes))
        self._crashes.append(now_s)
        return wait_s
