"""Functions in threads that end one by one, as they are let go; and what it takes to await them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from weft.agents.tools.threads import in_thread, threads_awaited

T = TypeVar("T")
SLOW_S = 120.0
"""What never takes that long; so a fault fails, and does not hang."""


class Gate:
    """Functions that say that they have begun, and then end one by one, as they are let go."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.at_once = 0
        self._goes: dict[int, threading.Event] = {}
        self._lock = threading.Lock()

    def function(self, number: int) -> Callable[[], int]:
        go = self._goes[number] = threading.Event()

        def passes() -> int:
            with self._lock:
                self.began.append(number)
                self.at_once = max(self.at_once, len(self.began) - len(self.ended))
            go.wait(SLOW_S)
            with self._lock:
                self.ended.append(number)
            return number

        return passes

    def task(self, number: int) -> asyncio.Task[int]:
        return asyncio.create_task(in_thread(self.function(number), f"gate{id(self)}"))

    def let(self, *numbers: int) -> None:
        for number in numbers or self._goes:
            self._goes[number].set()

    def threads(self) -> list[threading.Thread]:
        name = f"weft-gate{id(self)}"
        return [thread for thread in threading.enumerate() if thread.name == name]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SLOW_S):
        while not true():
            await asyncio.sleep(0.001)


async def all_of(*calls: Coroutine[Any, Any, T] | asyncio.Task[T]) -> list[T]:
    """What the calls, which begin together, give."""
    tasks = [
        call if isinstance(call, asyncio.Task) else asyncio.create_task(call) for call in calls
    ]
    return [await task for task in tasks]


async def turns() -> None:
    """All that is ready runs, and what follows from it."""
    for _ in range(10):
        await asyncio.sleep(0)


def awaited() -> int:
    return threads_awaited(asyncio.get_running_loop())


def play(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(SLOW_S):
            return await main()

    return asyncio.run(bounded())
