"""Runs whose events are read while they go on, and which end when nobody reads any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from weft.core.events import Event, Listener
from weft.workflow.result import FlowResult


class Waiting(Protocol):
    """A run that has been prepared."""

    async def wait(self) -> FlowResult:
        """Run to the end."""


R = TypeVar("R", bound=Waiting)


class HeardRun(Generic[R]):
    """A run under way. `result` is there once `events` has ended; it raises what the run raised."""

    def __init__(self, run: R, task: asyncio.Task[FlowResult], heard: asyncio.Queue[Event | None]):
        self.run = run
        self._task = task
        self._heard = heard

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events in order, as they come."""
        while (event := await self._heard.get()) is not None:
            yield event

    @property
    def cancelled(self) -> bool:
        """True when somebody has closed the runs."""
        return self._task.cancelled()

    @property
    def result(self) -> FlowResult:
        """How it ended."""
        return self._task.result()


class HeardRuns:
    """Any number of runs at once; `aclose` ends them all, and then none may begin."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[FlowResult]] = set()
        self.closed = False

    @asynccontextmanager
    async def start(self, make: Callable[[Listener], R]) -> AsyncGenerator[HeardRun[R], None]:
        """The run that `make` prepares, under way as long as the context is open."""
        heard: asyncio.Queue[Event | None] = asyncio.Queue()
        run = make(heard.put_nowait)
        task = asyncio.create_task(run.wait())
        self._tasks.add(task)
        task.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            yield HeardRun(run, task, heard)
        finally:
            task.cancel()
            await asyncio.wait((task,))
            self._tasks.discard(task)

    async def aclose(self) -> None:
        """Cancel what runs, and wait for it."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
