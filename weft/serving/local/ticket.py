"""A request on its way from an event loop to a model's thread; and that thread's batcher."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from copy import copy
from typing import Protocol

from weft.core.errors import ModelUnavailable, WeftError
from weft.core.ports.model import ModelEvent, ModelRequest


class Ticket:
    """A request and its events. The calling loop makes it; the model's thread fills it.

    The caller sets `cancelled`; the model's thread reads it before each step.
    """

    def __init__(self, request: ModelRequest, loop: asyncio.AbstractEventLoop) -> None:
        self.request = request
        self.cancelled = False
        self._loop = loop
        self._events: asyncio.Queue[ModelEvent | WeftError] = asyncio.Queue()

    def put(self, event: ModelEvent | WeftError) -> None:
        """Pass an event to the calling loop. Callable from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # that loop is closed, and with it the stream
            self.cancelled = True

    async def get(self) -> ModelEvent:
        """The next event. Raises the error that ended the request, if any.

        A copy of it: one error may end several requests, in different nodes.
        """
        event = await self._events.get()
        if isinstance(event, WeftError):
            raise copy(event) from event.__cause__
        return event


def converted(what: str, error: BaseException) -> WeftError:
    """`error` if it is weft's own, else a `ModelUnavailable` that says `what` went wrong.

    Not retryable: in this process it would fail again in the same way.
    """
    if isinstance(error, WeftError):
        return error
    wrapped = ModelUnavailable(f"{what}: {type(error).__name__}: {error}", retryable=False)
    wrapped.__cause__ = error
    return wrapped


class ModelBatcher(Protocol):
    """Rows that share forward passes. Used by one thread."""

    @property
    def forwards(self) -> int:
        """Forward passes so far."""

    @property
    def rows(self) -> Sized:
        """The running rows."""

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""

    def add(self, *tickets: Ticket) -> None:
        """Queue a request, or those of a group. An invalid one gets its error at once."""

    def step(self) -> None:
        """One forward pass. Its errors end every row."""

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and clear the cache."""

    def close(self) -> None:
        """Release resources. Nothing may run."""
