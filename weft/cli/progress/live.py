"""Progress on a terminal: one picture, redrawn in place while the run goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from rich.console import Console
from rich.live import Live

from weft.cli.progress.view import RunView
from weft.cli.speech import Speech
from weft.core.budget import Budget
from weft.core.events import Event, RunFinished, RunStarted
from weft.engine.trace import Trace

_FRAME_S = 0.1


class LiveProgress:
    """Draws in the event loop, never in a thread, so that nothing changes under the pencil."""

    def __init__(
        self,
        console: Console,
        trace: Trace,
        speech: Speech,
        budget: Budget | None,
        view: type[RunView] = RunView,
    ) -> None:
        self._view = view
        self._trace = trace
        self._speech = speech
        self._budget = budget
        self._started_s: float | None = None
        self._console = console
        self._live = self._new_live()

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, RunStarted):
            self._started_s = time.monotonic() - event.at_s
        elif isinstance(event, RunFinished):
            self._live.stop()

    def _new_live(self) -> Live:
        return Live(
            console=self._console, auto_refresh=False, transient=True, get_renderable=self._frame
        )

    def _frame(self) -> RunView:
        now_s = 0.0 if self._started_s is None else time.monotonic() - self._started_s
        return self._view(self._trace, self._speech, self._budget, now_s)

    @contextmanager
    def paused(self) -> Iterator[Console]:
        """Leave the terminal to somebody else for a while."""
        drawing = self._live.is_started
        self._live.stop()
        try:
            yield self._console
        finally:
            if drawing:
                # The old one would erase as many lines as it last drew, which are not its own now.
                self._live = self._new_live()
                self._live.start()

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """While the context is open, draw."""
        self._live.start()
        drawing = asyncio.create_task(self._redraw())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.wait([drawing])
            self._live.stop()

    async def _redraw(self) -> None:
        while True:
            if self._live.is_started:
                self._live.refresh()
            await asyncio.sleep(_FRAME_S)
