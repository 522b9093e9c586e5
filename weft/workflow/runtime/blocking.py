"""Coroutines called from code without `await`: scripts, notebooks, synchronous functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine that `make` returns in an event loop of its own, and wait for it.

    Inside a running event loop, as in a notebook, the coroutine's loop runs on another thread, and
    the running one stands still meanwhile. Ctrl-C cancels the coroutine and waits for its end.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        inside = False
    else:
        inside = True
    # Outside of `except`, so that errors of the coroutine have no context.
    return _run_on_thread(make()) if inside else asyncio.run(make())


def _run_on_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    outcome: Future[T] = Future()
    under_way: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        under_way.set_result((asyncio.get_running_loop(), task))
        return await coroutine

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            outcome.set_exception(error)

    thread = Thread(target=copy_context().run, args=(work,), name="weft-run-sync", daemon=True)
    try:
        thread.start()  # it waits too, and may be interrupted
        return outcome.result()
    finally:
        if not outcome.done():  # the caller was interrupted
            loop, task = under_way.result()
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
