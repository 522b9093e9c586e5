"""Waits for a place in a rate window: in order, without polling where that is possible."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.rates import RateChange, RateStore
from weft.durability.rates.window import RateLimits, RateWindow

T = TypeVar("T")


class MemoryRates:
    """Implements `RateStore` in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def change_rate(self, key: str, change: RateChange[T], now_s: float | None = None) -> T:
        with self._lock:
            now_s = self._clock.wall().timestamp() if now_s is None else now_s
            self._texts[key], result = change(self._texts.get(key, ""), now_s)
            return result


_RATES: WeakKeyDictionary[Clock, MemoryRates] = WeakKeyDictionary()
_SYSTEM = SystemClock()


def process_rates(clock: Clock | None) -> RateStore:
    """The store of this process, for runs that no journal has: one for each clock."""
    own = _SYSTEM if clock is None or isinstance(clock, SystemClock) else clock
    return _RATES.setdefault(own, MemoryRates(own))


class RateReservation:
    """A granted request. `tokens`: what it has used, to be set before its end."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens


class _Queue:
    """The requests of one event loop for one limit: the first of them asks the store."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()  # first come, first served
        self.freed = asyncio.Event()


_QUEUES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[int, str], _Queue]] = (
    WeakKeyDictionary()
)


class RateLimiter:
    """Admits requests for `key` within `limits`, which all users of `store` share.

    `name`: of the model or the tool, for people. `clock`: a run's; one that is not the system's
    replaces the clock of the store. `log` is called where a request has to wait.
    """

    def __init__(
        self,
        name: str,
        key: str,
        limits: RateLimits,
        store: RateStore,
        *,
        clock: Clock | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.limits = limits
        self._key = key
        self._store = store
        self._clock = clock or _SYSTEM
        self._log = log

    @asynccontextmanager
    async def admit(self, tokens: int = 0) -> AsyncIterator[RateReservation]:
        """Wait until a request of about so many tokens may be made; settle it at the end.

        Raises: `StoreError`.
        """
        ticket, tokens = uuid.uuid4().hex, self.limits.clamped(tokens)
        granted = False
        try:
            async with self._queue.turn:
                await self._granted(ticket, tokens)
            granted = True
        finally:
            if not granted:
                await self._settled(lambda window: window.withdraw(ticket))
        reservation = RateReservation(tokens)
        try:
            yield reservation
        finally:
            used = reservation.tokens
            await self._settled(lambda window: window.settle(ticket, used))

    async def _granted(self, ticket: str, tokens: int) -> None:
        queue, logged = self._queue, False

        def ask(window: RateWindow, now_s: float) -> tuple[float, float]:
            wait_s = window.ask(ticket, tokens, self.limits, now_s)
            return wait_s, window.due_s(ticket, self.limits) if wait_s else 0.0

        while True:
            queue.freed.clear()
            wait_s, due_s = await self._changed(ask)
            if not wait_s:
                return
            if self._log is not None and not logged:
                logged = True
                self._log(f"waits for {self._limit_text}: up to {max(wait_s, due_s):.3g} s")
            timer = self._clock.call_later(wait_s, queue.freed.set)
            try:
                await queue.freed.wait()
            finally:
                timer.cancel()

    @property
    def _limit_text(self) -> str:
        limits = {
            "requests_per_minute": self.limits.requests,
            "tokens_per_minute": self.limits.tokens,
        }
        named = [f"{name} {limit}" for name, limit in limits.items() if limit is not None]
        return f"the limit of {self.name} ({', '.join(named)})"

    @property
    def _queue(self) -> _Queue:
        queues = _QUEUES.setdefault(asyncio.get_running_loop(), {})
        return queues.setdefault((id(self._store), self._key), _Queue())

    async def _settled(self, change: Callable[[RateWindow], None]) -> None:
        """Apply `change` even while this task is being cancelled, and wake who waits."""

        def apply(window: RateWindow, _: float) -> None:
            change(window)

        applying = asyncio.ensure_future(self._changed(apply))
        try:
            await asyncio.shield(applying)
        except asyncio.CancelledError:
            await applying
            raise
        finally:
            self._queue.freed.set()

    async def _changed(self, change: Callable[[RateWindow, float], T]) -> T:
        def apply(text: str, now_s: float) -> tuple[str, T]:
            window = RateWindow(text)
            result = change(window, now_s)
            return window.text, result

        now_s = None
        if not isinstance(self._clock, SystemClock):
            now_s = self._clock.wall().timestamp()
        if isinstance(self._store, MemoryRates):
            return self._store.change_rate(self._key, apply, now_s)
        return await asyncio.to_thread(self._store.change_rate, self._key, apply, now_s)
