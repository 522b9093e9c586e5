"""The clock port, the system clock, and a fake clock that jumps to the next timer when idle."""

from __future__ import annotations

import asyncio
import selectors
import time
from asyncio import Future
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Never fire. Harmless if it has fired already."""


class Clock(Protocol):
    """A monotonic clock, wall time for people, and timers."""

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


T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_PATIENCE_S = 5.0
"""How long, in real time, a jump waits for threads of an executor."""


class FakeClock:
    """Implements `Clock`; `FakeClock().run(main())` runs a program in virtual time.

    `busy` says whether something runs that the event loop does not see, such as a thread: time
    then passes in real time, and jumps again afterwards.
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
        self._jumping = _JumpingSelector(clock)
        super().__init__(self._jumping)
        self._fake = clock

    def time(self) -> float:
        return self._fake.now()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> Future[T]:
        """As in the base class; while the thread works, time waits (see `_JumpingSelector`)."""
        working: Future[T] = super().run_in_executor(executor, func, *args)
        self._jumping.threads += 1
        working.add_done_callback(self._returned)
        return working

    def _returned(self, _: Future[Any]) -> None:
        self._jumping.threads -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that moves the clock by `timeout` where a real one would wait for it.

    While `threads` of an executor are at work it waits for them first, but at most `_PATIENCE_S`: a
    thread may itself wait for a timeout.
    """

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(_PATIENCE_S if self.threads else 0)
        if not ready and self._clock.busy():
            began_s = monotonic()
            ready = super().select(timeout)
            self._clock.advance(min(timeout, monotonic() - began_s))
        elif not ready:
            self._clock.advance(timeout)
        return ready
