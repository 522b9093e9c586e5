"""Blocking functions in daemon threads, awaited and abandoned like coroutines.

Not an executor: an executor joins its threads at the interpreter's exit, so that one function that
blocks for ever would keep the program from ending.
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
from weft.engine.scheduler.effects import EFFECTS

VARIABLE: Final = "WEFT_THREADS"
"""The environment variable with the limit of concurrent threads."""
_MOST: Final = 256
_LOOPS_WITH_SLOT: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar(
    "loops_with_slot", default=()
)


class _ThreadSlots:
    """The slots of one loop. `awaited`: the number of awaited functions, running or queued."""

    __slots__ = ("awaited", "free")

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.awaited = 0


# Only while there are awaited functions: a used semaphore would keep its loop alive.
_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, _ThreadSlots] = WeakKeyDictionary()


def threads_awaited(loop: asyncio.AbstractEventLoop) -> int:
    """The number of awaited functions in `loop`, running in threads or queued."""
    slots = _OF_LOOP.get(loop)
    return 0 if slots is None else slots.awaited


@asynccontextmanager
async def thread_slot() -> AsyncIterator[None]:
    """Wait for a slot for a thread, in order of arrival.

    Leaving the block frees the slot, even if the thread continues: a function that blocks for ever
    blocks no others. A function that has others called in its own loop, and waits for them, shares
    its slot with them, to avoid a deadlock.

    Raises: `BuildError` for an invalid `WEFT_THREADS`.
    """
    loop = asyncio.get_running_loop()
    slots = _OF_LOOP.get(loop)
    if slots is None:
        slots = _OF_LOOP[loop] = _ThreadSlots(_most())
    slots.awaited += 1
    try:
        if loop in _LOOPS_WITH_SLOT.get():
            yield
        else:
            async with slots.free:
                yield
    finally:
        slots.awaited -= 1
        if not slots.awaited:
            del _OF_LOOP[loop]


def context_with_slot() -> Context:
    """A copy of this task's context for a thread whose calls share its slot."""
    context = copy_context()
    context.run(_LOOPS_WITH_SLOT.set, (*_LOOPS_WITH_SLOT.get(), asyncio.get_running_loop()))
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
    """`in_new_thread` with a slot. Raises: what `thread_slot` and `in_new_thread` raise."""
    async with thread_slot():
        return await in_new_thread(function, name)


async def in_new_thread(function: Callable[[], T], name: str) -> T:
    """Run `function` for the tool `name` in a new daemon thread, in a copy of this task's context.

    The caller has a slot (`thread_slot`). Cancelling the caller returns at once; the thread
    continues, and its result is dropped.

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
        except BaseException as error:  # noqa: BLE001 - includes SystemExit
            failure = as_tool_error(name, error)
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(settle, failure, value, time.thread_time())

    thread = threading.Thread(target=work, name=f"weft-{name}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        hint = f"let fewer run at once: a smaller {VARIABLE}, or a limit for the tool"
        raise ToolLimitError(f"{name}: {error}", hint=hint, retryable=True) from error
    try:
        return await ended
    except asyncio.CancelledError:
        if (scope := EFFECTS.get()) is not None:
            # The run's result names it if it still works then.
            scope.ledger.abandon(scope.node, thread.is_alive)
        raise
