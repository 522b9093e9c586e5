"""The time that one request has."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

from weft.core.errors import ModelTimeout

T = TypeVar("T")


class Deadline:
    """`timeout_s` from now on; None or infinity is all the time there is.

    Raises: `ModelTimeout` when no time is given at all.
    """

    def __init__(self, timeout_s: float | None) -> None:
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
    def remaining_ms(self) -> int | None:
        """Milliseconds that are left, at least 1; None without a limit."""
        if self._end is None:
            return None
        return max(1, math.ceil((self._end - self._loop.time()) * 1000))

    async def wait(self, awaited: Awaitable[T]) -> T:
        """What `awaited` gives. Raises: `ModelTimeout` when that comes too late."""
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
                f"the answer was not complete after {self._timeout_s:g} s",
                hint="give the request more timeout_s, or let it write less",
            ) from None

    async def each(self, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """What `stream` gives, which is closed at the end. Raises: `ModelTimeout`.

        Only waiting for `stream` can be interrupted: what its reader does meanwhile cannot.
        """
        async with aclosing(stream):
            while True:
                try:
                    item = await self.wait(anext(stream))
                except StopAsyncIteration:
                    return
                yield item
