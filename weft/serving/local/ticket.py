"""One request on its way between an event loop and the thread that runs the model."""

from __future__ import annotations

import asyncio
from copy import copy

from weft.core.errors import WeftError
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
        except RuntimeError:  # that loop is closed: nobody listens any more
            self.cancelled = True

    async def get(self) -> ModelEvent:
        """The next event. Raises the error that ended the request, if one did.

        A copy of it: several requests may have ended for one reason, in nodes of their own.
        """
        event = await self._events.get()
        if isinstance(event, WeftError):
            raise copy(event) from event.__cause__
        return event
