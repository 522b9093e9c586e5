"""The state of one circuit breaker: closed, open, half-open. Knows no clock, no calls, no runs.

The pattern is that of M. Nygard, Release It! (2007). The window of failures slides: it is a list of
times, not a counter that a success resets.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.core.breaker import Breaker
from weft.core.events import BreakerState

_EARLY_S: Final = 0.001
"""A timer may ring so much too early; the call that it wakes is let through all the same."""
_MARGIN: Final = 1.5
"""Trial calls may take so much longer than the last call that succeeded."""


class Permit(NamedTuple):
    """The right to make one call at `since_s`, in the state number `epoch` of the breaker."""

    epoch: int
    since_s: float


@dataclass(frozen=True, slots=True)
class BreakerChange:
    """The breaker has entered `state`: after `count` failures, or successful trial calls.

    `retry_s`: in so many seconds an open one lets a call through.
    """

    state: BreakerState
    count: int = 0
    retry_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BreakerRefusal:
    """A call is refused by a breaker in `state`, which opened at `since_s`.

    `retry_s`: in so many seconds it may let a call through; None: nothing is known of that.
    """

    state: BreakerState
    since_s: float
    retry_s: float | None


class CircuitBreaker:
    """Counts how calls end, and decides whether the next one is made.

    Times are seconds of one clock that never goes back. Thread-safe: no method blocks or calls out.
    """

    def __init__(self, settings: Breaker) -> None:
        self.settings = settings
        self.state: BreakerState = "closed"
        self._epoch = 0
        self._failures: deque[float] = deque(maxlen=settings.failures)
        self._since_s = self._until_s = 0.0
        self._successes = 0
        self._trying = False
        self._turned_away = 0
        self._took_s = 0.0
        self._used = False
        self._lock = threading.Lock()

    def admit(self, now_s: float) -> tuple[Permit | BreakerRefusal, BreakerChange | None]:
        """The permit of a call that is to begin now, or its refusal; and the change that it makes.

        Each permit is given back to `succeeded`, `failed` or `release`, once.
        """
        with self._lock:
            change = None
            if self.state == "open":
                left_s = self._until_s - now_s
                if left_s > _EARLY_S:
                    return BreakerRefusal("open", self._since_s, left_s), None
                change = self._enter("half-open")
            if self.state == "half-open":
                if self._trying:
                    return BreakerRefusal("half-open", self._since_s, self._next_trial_s()), None
                self._trying = True
            return Permit(self._epoch, now_s), change

    def _next_trial_s(self) -> float | None:
        """When another call should come that is refused beside a trial call.

        The first ones come one after another, as the next trial calls; all others when the breaker
        has closed, if these succeed and take as long as calls did before.
        """
        self._turned_away += 1
        left = self.settings.successes - self._successes
        return min(self._turned_away, left) * self._took_s * _MARGIN or None

    def succeeded(self, permit: Permit, now_s: float) -> BreakerChange | None:
        """The call ended well; counts only while trial calls are made."""
        with self._lock:
            self._took_s = now_s - permit.since_s
            if not self._is_trial(permit):
                return None
            self._trying = False
            self._successes += 1
            if self._successes < self.settings.successes:
                return None
            return self._enter("closed", self._successes)

    def failed(self, permit: Permit, now_s: float) -> BreakerChange | None:
        """The call failed by a fault of the called side."""
        with self._lock:
            self._used = True
            if self._is_trial(permit):
                return self._open(now_s, 1)
            if self.state != "closed" or permit.epoch != self._epoch:
                return None  # it began before the breaker opened: it says nothing new
            failures, since_s = self._failures, now_s - self.settings.within_s
            failures.append(now_s)
            while failures[0] <= since_s:
                failures.popleft()
            if len(failures) < self.settings.failures:
                return None
            return self._open(now_s, len(failures))

    def release(self, permit: Permit) -> None:
        """The call ended without saying anything about the called side."""
        with self._lock:
            if self._is_trial(permit):
                self._trying = False

    def left_s(self, now_s: float) -> float | None:
        """Seconds until an open breaker lets a call through; None: it is not open."""
        return max(0.0, self._until_s - now_s) if self.state == "open" else None

    def restore(self, now_s: float, left_s: float) -> None:
        """Open a breaker that no failure was told to, for `left_s` seconds, at most `after_s`."""
        with self._lock:
            if self._used:
                return
            self._open(now_s, 0)
            self._until_s = now_s + min(max(0.0, left_s), self.settings.after_s)

    def _is_trial(self, permit: Permit) -> bool:
        return self.state == "half-open" and permit.epoch == self._epoch

    def _open(self, now_s: float, count: int) -> BreakerChange:
        if self.state == "closed":
            self._since_s = now_s
        self._until_s = now_s + self.settings.after_s
        return self._enter("open", count)

    def _enter(self, state: BreakerState, count: int = 0) -> BreakerChange:
        self._used = True
        self.state = state
        self._epoch += 1
        self._failures.clear()
        self._successes, self._turned_away, self._trying = 0, 0, False
        return BreakerChange(state, count, self.settings.after_s if state == "open" else 0.0)
