"""Blocking functions in daemon threads, awaited and abandoned like coroutines.

Not an executor: an executor's threads are joined when the interpreter exits, so that one function
that blocks for ever would keep the program from ending.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Final, TypeVar, cast
from weakref import WeakKeyDictionary

from weft.agents.tools.problem import as_tool_error
from weft.core.errors import BuildError, ToolLimitError, WeftError
from weft.engine.runner.meter import COMPUTED

VARIABLE: Final = "WEFT_THREADS"
"""Says how many functions run in threads at once."""
_MOST: Final = 256
_HELD: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("held", default=())


class _ThreadSlots:
    """Those of one loop. `awaited`: for how many functions somebody waits, in a thread or not."""

    __slots__ = ("awaited", "free")

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.awaited = 0


# Only while somebody waits: a semaphore that was waited for keeps its loop alive.
_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, _ThreadSlots] = WeakKeyDictionary()


def threads_awaited(loop: asyncio.AbstractEventLoop) -> int:
    """For how many functions somebody waits in `loop`: those in threads, and those to come."""
    places = _OF_LOOP.get(loop)
    return 0 if places is None else places.awaited


@asynccontextmanager
async def thread_slot() -> AsyncIterator[None]:
    """Wait until a function may run in a thread, first come, first served; then it may.

    Who leaves gives the place back, also where the thread goes on without anybody who waits for it:
    a function that blocks for ever holds up nobody. A function that has others called in its own
    loop, and waits for them, has a place for them all, or they might wait for each other for ever.

    Raises: `BuildError` for a `WEFT_THREADS` that is no number of threads.
    """
    loop = asyncio.get_running_loop()
    places = _OF_LOOP.get(loop)
    if places is None:
        places = _OF_LOOP[loop] = _ThreadSlots(_most())
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


def context_with_slot() -> Context:
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


T = TypeVar("T")


async def in_thread(function: Callable[[], T], name: str) -> T:
    """`in_new_thread`, as soon as there is a place for one more.

    Raises: what `thread_slot` and `in_new_thread` raise.
    """
    async with thread_slot():
        return await in_new_thread(function, name)


async def in_new_thread(function: Callable[[], T], name: str) -> T:
    """Run `function` for the tool `name` in a new daemon thread, in a copy of this task's context.

    For who has a place (`thread_slot`). Cancelling the caller returns at once; the thread goes on
    alone and its result is dropped.

    Raises: what `function` raises, as a `WeftError`; `ToolLimitError` when no thread can start.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = context_with_slot()

    computed = COMPUTED.get()

    def settle(error: WeftError | None, value: T | None, cpu_s: float) -> None:
        if ended.done():
            return
        if computed is not None:
            computed(cpu_s)
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(cast(T, value))

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # noqa: BLE001 - SystemExit and its kin end here as well
            failure = as_tool_error(name, error)
        with suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, failure, value, time.thread_time())

    try:
        threading.Thread(target=work, name=f"weft-{name}", daemon=True).start()
    except RuntimeError as error:
        hint = f"let fewer run at once: a smaller {VARIABLE}, or a limit for the tool"
        raise ToolLimitError(f"{name}: {error}", hint=hint, retryable=True) from error
    return await ended
