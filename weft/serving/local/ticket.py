"""One request between an event loop and the thread of a model; what that thread works on."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from copy import copy
from typing import Protocol

from weft.core.errors import ModelUnavailable, WeftError
from weft.core.ports.model import ModelEvent, ModelRequest


class Ticket:
    """Made by the asking loop, filled by the model's thread.

    `cancelled` is written by the asking side and read by the model's thread before each step.
    """

    def __init__(self, request: ModelRequest, loop: asyncio.AbstractEventLoop) -> None:
        self.request = request
        self.cancelled = False
        self._loop = loop
        self._events: asyncio.Queue[ModelEvent | WeftError] = asyncio.Queue()

    def put(self, event: ModelEvent | WeftError) -> None:
        """Hand an event to the asking loop. Callable from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        except RuntimeError:  # that loop is closed, and with it the stream
            self.cancelled = True

    async def get(self) -> ModelEvent:
        """The next event. Raises the error that ended the request, if one did.

        A copy of it: several requests may have ended for one reason, in nodes of their own.
        """
        event = await self._events.get()
        if isinstance(event, WeftError):
            raise copy(event) from event.__cause__
        return event


def converted(what: str, error: BaseException) -> WeftError:
    """`error` itself where it is weft's own; else one that says `what` went wrong.

    Not retryable: what runs in this process fails again in the same way.
    """
    if isinstance(error, WeftError):
        return error
    wrapped = ModelUnavailable(f"{what}: {type(error).__name__}: {error}", retryable=False)
    wrapped.__cause__ = error
    return wrapped


class ModelBatcher(Protocol):
    """Rows that share forwards. Used by one thread."""

    @property
    def forwards(self) -> int:
        """Forward passes so far."""

    @property
    def rows(self) -> Sized:
        """What runs."""

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""

    def add(self, *tickets: Ticket) -> None:
        """Queue a request, or those of a group. A bad one gets its error at once."""

    def step(self) -> None:
        """One forward. What it raises is every row's."""

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and forget what was cached."""

    def close(self) -> None:
        """Let go of what was opened. Nothing may run."""
