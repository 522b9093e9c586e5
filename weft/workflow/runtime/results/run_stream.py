"""A run as a stream of its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

from weft.core.errors import Cancelled, RunError
from weft.core.events import Event, Listener
from weft.workflow.runtime.results.result import FlowResult

T = TypeVar("T")


class WaitableRun(Protocol[T]):
    """A run that has been prepared; `T` is the type of its outputs."""

    async def wait(self) -> FlowResult[T]:
        """Run to the end."""


R = TypeVar("R", bound=WaitableRun[Any], covariant=True)
Tasks = set[asyncio.Task[FlowResult[Any]]]
_TASKS: Final[Tasks] = set()
"""Runs under way: an event loop does not keep its tasks alive."""


class RunStream(Generic[R]):
    """The events of a run, in order, as they happen.

        async with flow.stream(topic="rivers") as stream:
            async for event in stream:
                if isinstance(event, weft.events.NodeStreamed):
                    print(event.text, end="")
        print(stream.result().outputs)

    The run begins with the first event that is asked for, or where the context begins. Leaving the
    loop early (by `break`, an exception, a cancellation) cancels the run, quietly; `aclose`, and
    the end of the context, also wait until it has released everything. The `async with` may be
    left out. Events that nobody reads are kept in memory. One loop reads a stream.

    `make` prepares the run with one more listener: `RunStream(lambda listener:
    flow.resume("last", listeners=[listener]))` streams a resumed run. Without `waits`, the end of
    the context does not wait. `tasks` gets the run's task while it is under way.
    """

    def __init__(
        self, make: Callable[[Listener], R], *, waits: bool = True, tasks: Tasks | None = None
    ) -> None:
        self._make = make
        self._waits = waits
        self._tasks = _TASKS if tasks is None else tasks
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._run: R | None = None
        self._task: asyncio.Task[FlowResult[Any]] | None = None
        self._exhausted = False

    @property
    def run(self) -> R:
        """The run: answer its questions, read its id.

        Raises: `RunError` before it has begun.
        """
        if self._run is None:
            raise RunError("the run has not begun", hint="read an event, or write `async with`")
        return self._run

    @property
    def cancelled(self) -> bool:
        """True when the stream was left before the run's end."""
        return self._task is not None and self._task.cancelled()

    def result(self: RunStream[WaitableRun[T]]) -> FlowResult[T]:
        """The result of the run, once all events were read; its outputs have the flow's type.

        Raises: `RunError` before the end (`await stream.wait()` waits for it), `Cancelled` when the
        stream was left, and what made the run itself impossible.
        """
        if self._task is None or not self._task.done():
            hint = "read all events first, or write: await stream.wait()"
            raise RunError("the run has not ended", hint=hint)
        if self._task.cancelled():
            raise Cancelled("the stream was left before the end of the run")
        result: FlowResult[T] = self._task.result()
        return result

    async def wait(self: RunStream[WaitableRun[T]]) -> FlowResult[T]:
        """Run to the end without reading further events. Raises: as `result`."""
        await _ended(self._begin())
        return self.result()

    def cancel(self) -> None:
        """Cancel the run soon. Harmless when it has ended, or not begun."""
        task = self._task
        if task is not None and not task.done() and not (loop := task.get_loop()).is_closed():
            # Not at once: a task cancelled before its first step would release nothing. From any
            # thread: the garbage collector may be the one who calls.
            loop.call_soon_threadsafe(task.cancel)

    async def aclose(self) -> None:
        """Cancel the run, and wait until it has released everything."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def __aenter__(self) -> RunStream[R]:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        if self._waits:
            await self.aclose()

    def __aiter__(self) -> AsyncIterator[Event]:
        return _EventIterator(self)

    async def next_event(self) -> Event | None:
        """The next event; None after the last. Raises: what made the run itself impossible."""
        task = self._begin()
        event = None if self._exhausted else await self._queue.get()
        if event is None:
            self._exhausted = True
            if not task.cancelled():
                task.result()
        return event

    def _begin(self) -> asyncio.Task[FlowResult[Any]]:
        if self._task is None:
            queue, tasks = self._queue, self._tasks

            def end(ended: asyncio.Task[FlowResult[Any]]) -> None:
                tasks.discard(ended)
                if not ended.cancelled():
                    ended.exception()  # a stream that was left reports nothing
                queue.put_nowait(None)

            self._run = self._make(queue.put_nowait)
            self._task = asyncio.create_task(self._run.wait())
            tasks.add(self._task)
            self._task.add_done_callback(end)
        return self._task


class _EventIterator(AsyncIterator[Event]):
    """The loop over a stream. A loop that is left drops its iterator, and that cancels the run."""

    def __init__(self, stream: RunStream[R]) -> None:
        self._next = stream.next_event
        self._cancel = stream.cancel

    async def __anext__(self) -> Event:
        try:
            event = await self._next()
        except BaseException:  # its traceback would keep this iterator
            self._cancel()
            raise
        if event is None:
            raise StopAsyncIteration
        return event

    def __del__(self) -> None:
        self._cancel()


async def _ended(task: asyncio.Task[FlowResult[Any]]) -> None:
    """Wait for the end of `task`; a cancelled caller cancels it, and waits for it as well."""
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.get_loop().call_soon(task.cancel)
        await asyncio.wait((task,))
        raise


class RunStreams:
    """Any number of runs at once; `aclose` cancels them all, and then none may begin.

    `waits`: leaving a run's context waits for its end; else `aclose` does.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self._waits = waits
        self._tasks: Tasks = set()
        self.closed = False

    def start(self, make: Callable[[Listener], R]) -> RunStream[R]:
        """The run that `make` prepares, which runs while the stream's context is open."""
        return RunStream(make, waits=self._waits, tasks=self._tasks)

    async def aclose(self) -> None:
        """Cancel all runs, and wait for them."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
