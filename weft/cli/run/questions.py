"""Questions of a run to a person, answered by options, at the terminal, or not at all.

Reading a terminal cannot be interrupted, so a daemon thread reads the file descriptor itself: it
holds no lock that the interpreter needs to exit.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Protocol

from weft.cli.run import ProgressDisplay
from weft.cli.text import Json, clean, one_line
from weft.core.errors import InputError, UnknownReference
from weft.core.events import Event, HumanAnswered, HumanAsked, NodeFinished
from weft.core.ids import NodeId
from weft.engine.analysis.trace import Trace

_YES = frozenset(("y", "yes", "true", "1"))
_NO = frozenset(("n", "no", "false", "0"))


def parse_answer(text: str, schema: Mapping[str, object]) -> Json:
    """The value of an answer: text, or the number of a choice; lists and objects as JSON.

    Raises: `InputError` when it does not fit the schema.
    """
    value = _read(text.strip(), schema)
    _check(value, schema)
    return value


def expected(schema: Mapping[str, object]) -> str:
    """What to type, in a few words; empty if any text will do."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return "one of " + ", ".join(f"{n}: {_shown(c)}" for n, c in enumerate(choices, 1))
    words = {
        "boolean": "y or n",
        "integer": "a whole number",
        "number": "a number",
        "array": "a JSON list",
        "object": "a JSON object",
    }
    return words.get(str(schema.get("type")), "")


def _read(text: str, schema: Mapping[str, object]) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return _chosen(text, choices)
    kind = schema.get("type")
    if kind == "boolean" and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if kind in ("integer", "number", "array", "object", "null", "boolean"):
        return _json(text, schema)
    return text


def _chosen(text: str, choices: list[Json]) -> Json:
    by_text = {_shown(choice): choice for choice in choices}
    if text in by_text:
        return by_text[text]
    if text.isdecimal() and 0 < int(text) <= len(choices):
        return choices[int(text) - 1]
    raise InputError(f"{one_line(text, 60)!r} is none of the choices: {', '.join(by_text)}")


def _shown(choice: Json) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _json(text: str, schema: Mapping[str, object]) -> Json:
    try:
        value: Json = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        wanted = expected(schema) or "JSON"
        raise InputError(f"expected {wanted}, got {one_line(text, 60)!r}") from None
    return value


def _check(value: Json, schema: Mapping[str, object]) -> None:
    from weft.validation import violation

    if why := violation(value, schema):
        raise InputError(f"the answer does not fit: {one_line(why, 200)}")


if sys.platform != "win32":
    import termios


@cache
def keyboard() -> Keyboard | None:
    """The keyboard of this process's terminal, always the same; None without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Keyboard(sys.stdin.fileno())


class Keyboard:
    """Lines typed on file descriptor `fd`, one for each call of `line`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def forget(self) -> None:
        """Drop earlier input: it cannot be meant for a question not yet shown."""
        if sys.platform != "win32" and os.isatty(self._fd):
            termios.tcflush(self._fd, termios.TCIFLUSH)
        while not self._closed and not self._lines.empty():
            self._closed = self._lines.get_nowait() is None

    async def line(self) -> str | None:
        """The next line, without its end; None at the end of input."""
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._read, args=(loop,), daemon=True)
            self._thread.start()
        if self._closed:
            return None
        line = await self._lines.get()
        self._closed = line is None
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while True:
            try:
                piece = os.read(self._fd, 4096)
            except OSError:
                piece = b""
            *lines, rest = (rest + piece).split(b"\n")
            try:
                for line in lines:
                    text = line.decode("utf-8", "replace")
                    loop.call_soon_threadsafe(self._lines.put_nowait, text)
                if not piece:
                    loop.call_soon_threadsafe(self._lines.put_nowait, None)
                    return
            except RuntimeError:  # the loop is closed: there are no listeners left
                return


_QUIET_S = 0.5


class AnswerableRun(Protocol):
    """A run that can be answered and paused."""

    def answer(self, node: NodeId, value: Json) -> None:
        """Answer the question of `node`."""

    def pause(self, reason: str) -> None:
        """End this process's part of the run, so that a recorded run can be resumed."""


class Questions:
    """A listener that collects questions; `serve` answers them, one after another.

    `given`: answers from the command line, by node. `keyboard` None: no one can be asked. A
    question that cannot be answered ends the run once nothing else runs (`unanswered`); a given
    answer that does not fit ends it at once (`mistake`).
    """

    def __init__(self, trace: Trace, given: Mapping[str, str], keyboard: Keyboard | None) -> None:
        self._trace = trace
        self._given = given
        self._keyboard = keyboard
        self._asked: asyncio.Queue[HumanAsked] = asyncio.Queue()
        self._open: dict[NodeId, HumanAsked] = {}
        self._unanswerable: dict[NodeId, None] = {}
        self._changed = asyncio.Event()
        self._prompt: tuple[NodeId, asyncio.Future[str | None]] | None = None
        self.unanswered: tuple[NodeId, ...] = ()
        self.mistake: InputError | None = None
        self._used: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Apply an event. The trace has received it before."""
        self._changed.set()
        if isinstance(event, HumanAsked):
            self._open[event.node] = event
            self._asked.put_nowait(event)
        elif isinstance(event, HumanAnswered | NodeFinished):
            self._open.pop(event.node, None)
            self._unanswerable.pop(event.node, None)
            if self._prompt is not None and self._prompt[0] == event.node:
                self._prompt[1].cancel()

    def unused(self) -> list[str]:
        """The nodes with a given answer that did not ask."""
        return [node for node in self._given if node not in self._used]

    async def serve(self, run: AnswerableRun, progress: ProgressDisplay) -> None:
        """Answer questions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._end_when_stuck(run))
            while True:
                question = await self._asked.get()
                await self._settle(question, run, progress)

    async def _settle(
        self, question: HumanAsked, run: AnswerableRun, progress: ProgressDisplay
    ) -> None:
        if not self._is_open(question):
            return  # answered elsewhere meanwhile
        if question.node in self._given:
            self._used.add(question.node)
            try:
                self._answer(question, self._given[question.node], run)
            except InputError as error:
                error.node = question.node
                self.mistake = error
                run.pause(str(error))
        elif self._keyboard is None or not await self._prompted(question, run, progress):
            self._unanswerable[question.node] = None
            self._changed.set()

    def _answer(self, question: HumanAsked, text: str, run: AnswerableRun) -> None:
        value = parse_answer(text, question.schema)
        with suppress(UnknownReference):  # the question went away in the meantime
            run.answer(question.node, value)

    async def _prompted(
        self, question: HumanAsked, run: AnswerableRun, progress: ProgressDisplay
    ) -> bool:
        """Ask until there is an answer, or it is no longer needed; False at the end of input."""
        assert self._keyboard is not None
        self._keyboard.forget()
        with progress.paused() as console:
            console.print()
            console.print(clean(question.node), style="bold", end=" asks: ")
            console.print(clean(question.question).rstrip())
            hint = clean(expected(question.schema))
            while self._is_open(question):
                console.print(f"{hint} > " if hint else "> ", end="", style="cyan")
                line = await self._line_while_asked(question.node, self._keyboard)
                if line is None:
                    return not self._is_open(question)
                try:
                    self._answer(question, line, run)
                    return True
                except InputError as error:
                    console.print(clean(error.message), style="red")
        return True

    def _is_open(self, question: HumanAsked) -> bool:
        return self._open.get(question.node) is question

    async def _line_while_asked(self, node: NodeId, keyboard: Keyboard) -> str | None:
        """The next line; None at the end of input, or when an answer is no longer needed."""
        typing = asyncio.ensure_future(keyboard.line())
        self._prompt = node, typing
        try:
            await asyncio.wait([typing])
            return None if typing.cancelled() else typing.result()
        finally:
            typing.cancel()

    async def _end_when_stuck(self, run: AnswerableRun) -> None:
        while True:
            self._changed.clear()
            if self._unanswerable and self._trace.active.keys() <= self._unanswerable.keys():
                try:
                    # Not `wait_for`: it can swallow a cancellation that comes with the event.
                    async with asyncio.timeout(_QUIET_S):
                        await self._changed.wait()
                except TimeoutError:
                    self.unanswered = tuple(self._unanswerable)
                    run.pause(f"nobody can answer {', '.join(self.unanswered)} here")
                    return
            else:
                await self._changed.wait()
