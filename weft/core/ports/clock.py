"""The clock port: the only way the engine learns the time or waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


class Timer(Protocol):
    """A callback that has not fired yet."""

    def cancel(self) -> None:
        """Never fire. Harmless when it has fired already."""


class Clock(Protocol):
    """Seconds that only move forward, wall time for people, and waiting."""

    def now(self) -> float:
        """Seconds since an arbitrary, fixed moment. Never decreases."""

    def wall(self) -> datetime:
        """The date and time in UTC; for people and expiry, not for measuring."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once, `delay_s` seconds from now, in the running event loop."""

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` seconds. Cancellable."""


class SystemClock:
    """The machine's own monotonic clock and the running event loop's timers."""

    now = staticmethod(time.monotonic)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
