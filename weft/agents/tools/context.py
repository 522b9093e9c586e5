"""The context of a running tool's call: logs, cancellation, time left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import TypeAdapter

from weft.core.errors import ToolError
from weft.core.loggers import logger
from weft.durability.calls.digest import identity
from weft.engine.graph.node import AskHuman
from weft.engine.scheduler.effects import EffectScope

LogSink = Callable[[str], None]
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class ToolQuestions:
    """Asks for a call of a tool in the run `scope`; `limit`, its time limit, waits meanwhile."""

    scope: EffectScope
    limit: asyncio.Timeout
    loop: asyncio.AbstractEventLoop

    async def ask(self, question: str, schema: Mapping[str, Any]) -> Any:
        """A person's answer that fits `schema`."""
        about = identity("ask", question, schema)
        due, began = self.limit.when(), self.loop.time()
        if due is not None:
            self.limit.reschedule(None)
        try:
            asked = AskHuman(question, schema)
            return await self.scope.context.ask(asked, f"ask_{about[:_DIGITS]}", about)
        finally:
            if due is not None:
                self.limit.reschedule(due + self.loop.time() - began)


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
        self._questions: ToolQuestions | None = None

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

    async def ask(self, question: str, schema: object = str) -> Any:
        """A person's answer: a value of the type `schema`, or plain data of a JSON Schema.

        Where nobody can answer, the run is left here. When it resumes, the tool runs again from its
        start, and questions that were answered return at once: what the tool does before a question
        must bear repetition. The tool's time limit does not run meanwhile.

        Raises: `ToolError` outside a run, `Cancelled` when the question is.
        """
        if self._questions is None:
            raise ToolError("there is no run that could ask", hint="call the tool in a run")
        if isinstance(schema, Mapping):
            return await self._questions.ask(question, schema)
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, schema))
        answer = await self._questions.ask(question, adapter.json_schema())
        return adapter.validate_python(answer)

    def ask_sync(self, question: str, schema: object = str) -> Any:
        """Like `ask`, for a tool that runs in a thread."""
        if self._questions is None:
            raise ToolError("there is no run that could ask", hint="call the tool in a run")
        asking = self.ask(question, schema)
        return asyncio.run_coroutine_threadsafe(asking, self._questions.loop).result()

    def attach(self, questions: ToolQuestions) -> None:
        """Let the call ask. For the caller of the tool, not the tool."""
        self._questions = questions

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
