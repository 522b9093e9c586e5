"""The deadline of one request."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

from weft.core.errors import ModelTimeout

T = TypeVar("T")


class Deadline:
    """`timeout_s` from now; None or infinity: no limit. `what` is for the error message.

    Raises: `ModelTimeout` when no time is left at the start.
    """

    def __init__(self, timeout_s: float | None, what: str = "the answer") -> None:
        self._what = what
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        if not self._timeout_s > 0:
            raise ModelTimeout(
                f"a request with {self._timeout_s:g} s to answer it is not sent",
                hint="the time was spent before, or timeout_s is too small",
            )
        self._loop = asyncio.get_running_loop()
        end = self._loop.time() + self._timeout_s
        self._end = end if math.isfinite(end) else None

    @property
    def left_s(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self._end is None else max(0.0, self._end - self._loop.time())

    @property
    def remaining_ms(self) -> int | None:
        """Milliseconds left, at least 1; None without a limit."""
        return None if self.left_s is None else max(1, math.ceil(self.left_s * 1000))

    async def wait(self, awaited: Awaitable[T]) -> T:
        """The result of `awaited`, which is cancelled at the deadline. Raises: `ModelTimeout`.

        The caller's own code between two such waits is not interrupted.
        """
        if self._end is None:
            return await awaited
        scope = asyncio.timeout_at(self._end)
        try:
            async with scope:
                return await awaited
        except TimeoutError:
            if not scope.expired():
                raise
            raise ModelTimeout(
                f"{self._what} was not complete after {self._timeout_s:g} s",
                hint="give the request more timeout_s, or let it write less",
            ) from None

    async def each(self, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The items of `stream`, which is closed at the end. Raises: `ModelTimeout`.

        Only waiting for `stream` can be interrupted, not the reader's own code.
        """
        async with aclosing(stream):
            while True:
                try:
                    item = await self.wait(anext(stream))
                except StopAsyncIteration:
                    return
                yield item
