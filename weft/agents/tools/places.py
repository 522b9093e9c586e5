"""Places for functions in threads: so many at once in an event loop, the others wait in order.

Starts no thread, and does not know when one ends: only whether somebody still waits for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Final
from weakref import WeakKeyDictionary

from weft.core.errors import BuildError

VARIABLE: Final = "WEFT_THREADS"
"""Says how many functions run in threads at once."""
_MOST: Final = 256
_HELD: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("held", default=())


class _Places:
    """Those of one loop. `awaited`: for how many functions somebody waits, in a thread or not."""

    __slots__ = ("awaited", "free")

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.awaited = 0


# Only while somebody waits: a semaphore that was waited for keeps its loop alive.
_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, _Places] = WeakKeyDictionary()


def threads_awaited(loop: asyncio.AbstractEventLoop) -> int:
    """For how many functions somebody waits in `loop`: those in threads, and those to come."""
    places = _OF_LOOP.get(loop)
    return 0 if places is None else places.awaited


@asynccontextmanager
async def thread_place() -> AsyncIterator[None]:
    """Wait until a function may run in a thread, first come, first served; then it may.

    Who leaves gives the place back, also where the thread goes on without anybody who waits for it:
    a function that blocks for ever holds up nobody. A function that has others called in its own
    loop, and waits for them, has a place for them all, or they might wait for each other for ever.

    Raises: `BuildError` for a `WEFT_THREADS` that is no number of threads.
    """
    loop = asyncio.get_running_loop()
    places = _OF_LOOP.get(loop)
    if places is None:
        places = _OF_LOOP[loop] = _Places(_most())
    places.awaited += 1
    try:
        if loop in _HELD.get():
            yield
        else:
            async with places.free:
                yield
    finally:
        places.awaited -= 1
        if not places.awaited:
            del _OF_LOOP[loop]


def context_with_place() -> Context:
    """A copy of this task's context for a thread: what is called from there holds a place."""
    context = copy_context()
    context.run(_HELD.set, (*_HELD.get(), asyncio.get_running_loop()))
    return context


def _most() -> int:
    text = os.environ.get(VARIABLE) or str(_MOST)
    with suppress(ValueError):
        if (most := int(text)) > 0:
            return most
    hint = "give a whole number above 0: how many functions may run in threads at once"
    raise BuildError(f"{VARIABLE} is {text[:80]!r}", hint=hint)
