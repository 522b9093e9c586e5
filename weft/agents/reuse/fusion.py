"""Calls of one tool that come close together, made as one.

Knows the tool by name only. The order of results is that of the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.agents.reuse.failure import own
from weft.core.errors import ToolResultError, WeftError
from weft.core.ports import Clock, Timer

Call = Mapping[str, Any]
Together = Callable[[Sequence[Call]], Awaitable[Sequence[Any | WeftError]]]


@dataclass(slots=True)
class _Batch:
    """Calls that leave together. `task` makes them, once they have left."""

    calls: list[tuple[Call, asyncio.Future[Any]]] = field(default_factory=list)
    timer: Timer | None = None
    task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> list[tuple[Call, asyncio.Future[Any]]]:
        """Those that somebody still waits for."""
        return [(call, future) for call, future in self.calls if not future.done()]


class Fusion:
    """Collects calls for `window_s` seconds after the first, at most `most`, and makes them.

    A window of 0 ends with the turn of the event loop.
    """

    def __init__(self, together: Together, most: int, window_s: float, clock: Clock) -> None:
        self._together = together
        self._most = most
        self._window_s = window_s
        self._clock = clock
        self._open = _Batch()

    async def call(self, arguments: Call) -> Any:
        """The result of this call alone. Raises: its failure.

        Cancelling the caller takes the call out, and ends a batch that nobody else waits for.
        """
        batch, future = self._open, asyncio.get_running_loop().create_future()
        batch.calls.append((arguments, future))
        if len(batch.calls) == self._most:
            self._leave(batch)
        elif len(batch.calls) == 1:
            batch.timer = self._clock.call_later(self._window_s, lambda: self._leave(batch))
        try:
            return await future
        except asyncio.CancelledError:
            await self._given_up(batch)
            raise

    def _leave(self, batch: _Batch) -> None:
        if batch is self._open:
            self._open = _Batch()
        if batch.timer is not None:
            batch.timer.cancel()
        if batch.task is None and batch.wanted:
            batch.task = asyncio.ensure_future(self._make(batch.wanted))

    async def _given_up(self, batch: _Batch) -> None:
        if batch.wanted:
            return
        self._leave(batch)
        if batch.task is not None and not batch.task.done():
            batch.task.cancel()
            await asyncio.wait({batch.task})

    async def _make(self, calls: list[tuple[Call, asyncio.Future[Any]]]) -> None:
        try:
            outcomes = await self._together([call for call, _ in calls])
            if len(outcomes) != len(calls):
                raise ToolResultError(f"{len(outcomes)} results came for {len(calls)} calls")
        except asyncio.CancelledError:
            for _, future in calls:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is the callers' to handle
            outcomes = [own(error) for _ in calls]
        for (_, future), outcome in zip(calls, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, WeftError):
                future.set_exception(outcome)
                future.exception()  # its caller may be cancelled before it looks
            else:
                future.set_result(outcome)
