"""The context of a running tool's call: logs, cancellation, time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from weft.core.loggers import logger

LogSink = Callable[[str], None]

_logger = logger("tools")
_sink: ContextVar[LogSink] = ContextVar("weft_tool_logs", default=_logger.info)


class ToolContext:
    """The context of a call. A parameter annotated `ToolContext` receives it, outside the schema.

    Usable from the tool's own thread and from threads it starts. A direct call of the function, for
    example in a test, passes `ToolContext()`, with `log` to see its lines.

    `deadline_s` is the deadline of the call, on the clock `now`.
    """

    def __init__(
        self,
        log: LogSink | None = None,
        *,
        deadline_s: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log or _logger.info
        self._deadline_s = deadline_s
        self._now = now
        self._ended = threading.Event()

    def log(self, text: str) -> None:
        """Log a line for people; ignored once the call is cancelled."""
        if not self.cancelled:
            self._log(text)

    @property
    def cancelled(self) -> bool:
        """Whether the call is cancelled: return as soon as possible.

        A thread cannot be stopped from outside, so a long-running function has to poll this.
        """
        return self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a thread, but return at once when cancelled; returns `cancelled`."""
        return self._ended.wait(seconds)

    def time_left_s(self) -> float | None:
        """Seconds until the deadline, at least 0, or None without a limit."""
        return None if self._deadline_s is None else max(0.0, self._deadline_s - self._now())

    def cancel(self) -> None:
        """Cancel the call. For the caller of the tool, not the tool."""
        self._ended.set()


@contextmanager
def tool_logs(sink: LogSink) -> Iterator[None]:
    """Send the log lines of tools called inside the `with` block to `sink`.

    `sink` is called in the thread of the event loop. Without a block, lines go to the logger
    "weft.tools".
    """
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def send_tool_logs(sink: LogSink) -> None:
    """Like `tool_logs`, for the rest of the current task."""
    _sink.set(sink)


def current_sink() -> LogSink:
    """The sink for log lines of tools called here."""
    return _sink.get()
