"""One thread for this process's computations that would block an event loop, one after another.

Threads that compute in Python share one lock. The more of them want it, the longer an event loop
waits for it; with one thread, it waits a few milliseconds. Not for work that waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_THREAD: Final = ThreadPoolExecutor(1, "weft-turns")


async def run_in_compute_thread(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run `work` in the thread. Cancelling the caller does not end work that has begun."""
    context = copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        _THREAD, lambda: context.run(work, *args, **named)
    )
