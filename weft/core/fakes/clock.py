"""A clock that jumps: when nothing is left to do but wait, time moves to the next timer at once.

It is an asyncio event loop's own clock, so `asyncio.sleep`, `asyncio.timeout` and user code jump
too. Work in threads is not seen, unless somebody looks after it: time may jump past it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, TypeVar

from weft.core.ports.clock import Timer

T = TypeVar("T")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class FakeClock:
    """Implements `Clock`; `FakeClock().run(main())` runs a program in virtual time.

    `busy` says whether something goes on that the event loop does not see, such as a thread: time
    then passes as it does, and jumps again when that is over.
    """

    def __init__(self, start_s: float = 0.0, *, busy: Callable[[], bool] = lambda: False) -> None:
        self._now_s = start_s
        self.busy = busy

    def now(self) -> float:
        return self._now_s

    def wall(self) -> datetime:
        return _EPOCH + timedelta(seconds=self._now_s)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def advance(self, seconds: float) -> None:
        """Move time forward by hand."""
        if seconds < 0:
            raise ValueError("time only moves forward")
        self._now_s += seconds

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Like `asyncio.run`, on a loop whose time is this clock's."""
        with asyncio.Runner(loop_factory=lambda: _JumpingLoop(self)) as runner:
            return runner.run(main)


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._fake = clock

    def time(self) -> float:
        return self._fake.now()


class _JumpingSelector(selectors.DefaultSelector):
    """Where a real selector would wait for `timeout` seconds, this one moves the clock instead."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready and self._clock.busy():
            began_s = monotonic()
            ready = super().select(timeout)
            self._clock.advance(min(timeout, monotonic() - began_s))
        elif not ready:
            self._clock.advance(timeout)
        return ready
