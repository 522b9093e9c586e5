"""What a running tool may ask of the call it serves: to log, whether to stop, how long it has."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from weft.core.redaction import SecretFilter

LogSink = Callable[[str], None]

_logger = logging.getLogger("weft.tools")
_logger.addFilter(SecretFilter())
_sink: ContextVar[LogSink] = ContextVar("weft_tool_logs", default=_logger.info)


class ToolContext:
    """A parameter annotated `ToolContext` receives one; it is no part of the tool's schema.

    Usable from the tool's own thread and from threads it starts. Whoever calls the function itself,
    as a test does, passes `ToolContext()`, with `log` to see its lines.

    `deadline_s` is when the call runs out of time, in the seconds of `now`.
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
        """Show people a line. Silent once nobody waits for the result any more."""
        if not self.cancelled:
            self._log(text)

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result any more: stop as soon as you can.

        A thread cannot be stopped from outside, so a function that runs long looks here.
        """
        return self._ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a thread, but wake up at once when cancelled; returns `cancelled`."""
        return self._ended.wait(seconds)

    def time_left_s(self) -> float | None:
        """Seconds until the call is cut off, 0 when it is too late, None without a limit."""
        return None if self._deadline_s is None else max(0.0, self._deadline_s - self._now())

    def cancel(self) -> None:
        """Say that nobody waits any more. The caller of the tool does this, not the tool."""
        self._ended.set()


@contextmanager
def tool_logs(sink: LogSink) -> Iterator[None]:
    """Send the log lines of tools that are called inside the `with` block to `sink`.

    `sink` is called in the thread of the event loop. Without a block, lines go to the logger
    "weft.tools".
    """
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def send_tool_logs(sink: LogSink) -> None:
    """Like `tool_logs`, for the rest of the task that calls this."""
    _sink.set(sink)


def current_sink() -> LogSink:
    """Where log lines of tools go that are called here."""
    return _sink.get()
