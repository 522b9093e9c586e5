"""One tool call for several callers: equal calls are shared, similar ones batched, errors copied.

An error records its node on its way up, so one object cannot serve two nodes. Results are in the
order of the calls.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.core.errors import ToolResultError, WeftError, convert
from weft.core.ports import Clock, Timer


def copy_error(error: Exception) -> WeftError:
    """A copy of `error` with its cause; an error that cannot be copied is wrapped."""
    found = convert(error)
    try:
        copied = copy.copy(found)
    except Exception:  # noqa: BLE001 - a user's class may fail to copy
        copied = WeftError(found.message, hint=found.hint, retryable=found.retryable)
    copied.__cause__ = found.__cause__
    return copied


class SharedCall:
    """Runs `work` in its own task, starting now."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._task = asyncio.ensure_future(work)
        self._waiting = 0
        self._shared = False

    @property
    def usable(self) -> bool:
        """Whether another caller may join: it runs for a caller, or it has a result."""
        if not self._task.done():
            return self._waiting > 0
        return not self._task.cancelled() and self._task.exception() is None

    async def result(self) -> Any:
        """The result, a copy for each caller. Raises: a copy of the work's error."""
        self._shared |= self._waiting > 0
        self._waiting += 1
        try:
            return copy.deepcopy(await asyncio.shield(self._task))
        except Exception as error:
            if self._shared:
                raise copy_error(error) from error.__cause__
            raise
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})


CallArguments = Mapping[str, Any]
CallMany = Callable[[Sequence[CallArguments]], Awaitable[Sequence[Any | WeftError]]]


@dataclass(slots=True)
class _CallBatch:
    """Calls of one batch. `task` makes them, once the batch is dispatched."""

    calls: list[tuple[CallArguments, asyncio.Future[Any]]] = field(default_factory=list)
    timer: Timer | None = None
    task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> list[tuple[CallArguments, asyncio.Future[Any]]]:
        """The calls with a waiting caller."""
        return [(call, future) for call, future in self.calls if not future.done()]


class CallFusion:
    """Collects calls for `window_s` seconds after the first, at most `most`, and batches them.

    A window of 0 ends with the current iteration of the event loop.
    """

    def __init__(self, call_many: CallMany, most: int, window_s: float, clock: Clock) -> None:
        self._call_many = call_many
        self._most = most
        self._window_s = window_s
        self._clock = clock
        self._open = _CallBatch()

    async def call(self, arguments: CallArguments) -> Any:
        """The result of this call alone. Raises: its failure.

        Cancelling the caller removes the call, and ends a batch without callers.
        """
        batch, future = self._open, asyncio.get_running_loop().create_future()
        batch.calls.append((arguments, future))
        if len(batch.calls) == self._most:
            self._dispatch(batch)
        elif len(batch.calls) == 1:
            batch.timer = self._clock.call_later(self._window_s, lambda: self._dispatch(batch))
        try:
            return await future
        except asyncio.CancelledError:
            await self._on_cancel(batch)
            raise

    def _dispatch(self, batch: _CallBatch) -> None:
        if batch is self._open:
            self._open = _CallBatch()
        if batch.timer is not None:
            batch.timer.cancel()
        if batch.task is None and batch.wanted:
            batch.task = asyncio.ensure_future(self._make(batch.wanted))

    async def _on_cancel(self, batch: _CallBatch) -> None:
        if batch.wanted:
            return
        self._dispatch(batch)
        if batch.task is not None and not batch.task.done():
            batch.task.cancel()
            await asyncio.wait({batch.task})

    async def _make(self, calls: list[tuple[CallArguments, asyncio.Future[Any]]]) -> None:
        try:
            outcomes = await self._call_many([call for call, _ in calls])
            if len(outcomes) != len(calls):
                raise ToolResultError(f"{len(outcomes)} results came for {len(calls)} calls")
        except asyncio.CancelledError:
            for _, future in calls:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - the callers handle it
            outcomes = [copy_error(error) for _ in calls]
        for (_, future), outcome in zip(calls, outcomes, strict=True):
            if future.done():
                continue
            if isinstance(outcome, WeftError):
                future.set_exception(outcome)
                future.exception()  # retrieved: its caller may be cancelled first
            else:
                future.set_result(outcome)
