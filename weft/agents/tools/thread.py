"""A blocking function in a thread of its own, awaited and abandoned like a coroutine.

Not an executor: an executor's threads are joined when the interpreter exits, so that one function
that blocks for ever would keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from weft.agents.tools.problem import converted
from weft.core.errors import ToolLimitError, WeftError

T = TypeVar("T")
_AWAITED: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def threads_awaited(loop: asyncio.AbstractEventLoop) -> int:
    """How many functions in threads somebody waits for in `loop`."""
    return _AWAITED.get(loop, 0)


async def in_thread(function: Callable[[], T], name: str) -> T:
    """Run `function` for the tool `name` in a new daemon thread, in a copy of this task's context.

    Cancelling the caller returns at once; the thread goes on alone and its result is dropped.

    Raises: what `function` raises, as a `WeftError`; `ToolLimitError` when no thread can start.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(error: WeftError | None, value: T | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(cast(T, value))

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # noqa: BLE001 - SystemExit and its kin end here as well
            failure = converted(name, error)
        with suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, failure, value)

    try:
        threading.Thread(target=work, name=f"weft-{name}", daemon=True).start()
    except RuntimeError as error:
        hint = "let fewer tools run at once: give them a resource and that a limit"
        raise ToolLimitError(f"{name}: {error}", hint=hint, retryable=True) from error
    _AWAITED[loop] = threads_awaited(loop) + 1
    try:
        return await ended
    finally:
        _AWAITED[loop] -= 1
