"""A request on its way from an event loop to a model's thread; and that thread's batcher."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from copy import copy
from typing import Protocol

from weft.core.errors import ModelUnavailable, WeftError
from weft.core.ports.model import ModelEvent, ModelRequest

_HELD = threading.local()
_Events = list[tuple["Ticket", ModelEvent | WeftError]]


@contextmanager
def held_events() -> Iterator[None]:
    """What this thread puts within reaches its loops at the end, each loop at once.

    A loop that is woken wants the interpreter and a core: one time for each row of a batch, that
    takes longer than choosing their tokens.
    """
    held: dict[asyncio.AbstractEventLoop, _Events] = {}
    _HELD.by_loop = held
    try:
        yield
    finally:
        _HELD.by_loop = None
        for loop, events in held.items():
            _deliver(loop, events)


def _deliver(loop: asyncio.AbstractEventLoop, events: _Events) -> None:
    def arrive() -> None:
        for ticket, event in events:
            ticket.take_in(event)

    try:
        loop.call_soon_threadsafe(arrive)
    except RuntimeError:  # that loop is closed, and with it the streams
        for ticket, _ in events:
            ticket.cancelled = True


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
        """Pass an event to the calling loop, or keep it for `held_events`. For any thread."""
        held: dict[asyncio.AbstractEventLoop, _Events] | None = getattr(_HELD, "by_loop", None)
        if held is None:
            _deliver(self._loop, [(self, event)])
        else:
            held.setdefault(self._loop, []).append((self, event))

    def take_in(self, event: ModelEvent | WeftError) -> None:
        """Let `get` return an event. Called in the loop."""
        self._events.put_nowait(event)

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
