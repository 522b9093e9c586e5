"""The time one call has. Bites only while the call itself waits, never in its caller's code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from weft.core.errors import ModelTimeout
from weft.core.ports.clock import Clock

T = TypeVar("T")


class CallDeadline:
    """`timeout_s` from now; None never ends. `close` it when the call is over."""

    def __init__(self, clock: Clock, timeout_s: float | None, what: str) -> None:
        self._clock = clock
        self._what = what
        self._timeout_s = timeout_s
        self._until_s = None if timeout_s is None else clock.now() + timeout_s
        self._waiting: asyncio.Task[Any] | None = None
        self._bitten = False
        self._over = timeout_s is not None and timeout_s <= 0
        self._timer = None
        if timeout_s is not None and not self._over:
            self._timer = clock.call_later(timeout_s, self._end)

    def left_s(self) -> float | None:
        """Seconds that remain, or None without a limit."""
        if self._until_s is None:
            return None
        return max(0.0, self._until_s - self._clock.now())

    async def wait(self, begin: Callable[[], Awaitable[T]]) -> T:
        """What `begin()` gives, if it comes in time. It is cancelled where it runs otherwise.

        Raises: `ModelTimeout`.
        """
        if self._over:
            raise self._error()
        task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        self._waiting = task
        try:
            result = await begin()
        except asyncio.CancelledError:
            # Somebody else may have cancelled the task in the same moment; then that counts.
            if self._release(task) <= cancelling and self._over:
                raise self._error() from None
            raise
        except BaseException:
            self._release(task)
            raise
        self._release(task)
        return result

    def close(self) -> None:
        """Stop counting."""
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        self._over = True
        if self._waiting is not None:
            self._bitten = True
            self._waiting.cancel()

    def _release(self, task: asyncio.Task[Any]) -> int:
        """Take our own cancellation back, if there was one; returns how many remain."""
        self._waiting = None
        if self._bitten:
            self._bitten = False
            return task.uncancel()
        return task.cancelling()

    def _error(self) -> ModelTimeout:
        return ModelTimeout(
            f"{self._what} did not answer completely within {self._timeout_s:g} s",
            hint="give the call more time, or ask for fewer tokens",
        )
