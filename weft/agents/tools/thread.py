"""A blocking function in a thread of its own, awaited and abandoned like a coroutine.

Not an executor: an executor's threads are joined when the interpreter exits, so that one function
that blocks for ever would keep the program from ending.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from weft.agents.tools.places import VARIABLE, context_with_place, thread_place
from weft.agents.tools.problem import converted
from weft.core.errors import ToolLimitError, WeftError
from weft.engine.metering import COMPUTED

T = TypeVar("T")


async def in_thread(function: Callable[[], T], name: str) -> T:
    """`in_new_thread`, as soon as there is a place for one more.

    Raises: what `thread_place` and `in_new_thread` raise.
    """
    async with thread_place():
        return await in_new_thread(function, name)


async def in_new_thread(function: Callable[[], T], name: str) -> T:
    """Run `function` for the tool `name` in a new daemon thread, in a copy of this task's context.

    For who has a place (`thread_place`). Cancelling the caller returns at once; the thread goes on
    alone and its result is dropped.

    Raises: what `function` raises, as a `WeftError`; `ToolLimitError` when no thread can start.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = context_with_place()

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
            failure = converted(name, error)
        with suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(settle, failure, value, time.thread_time())

    try:
        threading.Thread(target=work, name=f"weft-{name}", daemon=True).start()
    except RuntimeError as error:
        hint = f"let fewer run at once: a smaller {VARIABLE}, or a limit for the tool"
        raise ToolLimitError(f"{name}: {error}", hint=hint, retryable=True) from error
    return await ended
