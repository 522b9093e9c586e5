"""Questions of a run to a person, answered by options, at the terminal, or not at all.

Reading a terminal cannot be interrupted, so a daemon thread reads the file descriptor itself: it
holds no lock that the interpreter needs to exit.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Protocol

from weft.cli.console import table
from weft.cli.run import ProgressDisplay
from weft.cli.text import Json, clean, json_text, plain
from weft.core.errors import InputError, UnknownReference
from weft.core.events import Event, HumanAnswered, HumanAsked, NodeFinished
from weft.core.ids import NodeId, parent_of
from weft.workflow.history.answer_text import expected, parse_answer

if TYPE_CHECKING:
    from rich.console import Console

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


class AnswerableRun(Protocol):
    """A run that can be answered, left at its questions, and paused."""

    def answer(self, node: NodeId, value: Json) -> None:
        """Answer the question of `node`."""

    def decline(self, node: NodeId) -> None:
        """Nobody answers the question of `node` here."""

    def pause(self, reason: str) -> None:
        """End this process's part of the run, so that a recorded run can be resumed."""


class Questions:
    """A listener that collects questions; `serve` answers them, one after another.

    `given`: answers from the command line, by the node that asks or the one around an approval.
    `approve`: every call of a tool is approved. `keyboard` None: no one can be asked. A question
    that cannot be answered is declined: the run is left where nothing else can go on. A given
    answer that does not fit ends it at once (`mistake`).
    """

    def __init__(
        self, given: Mapping[str, str], keyboard: Keyboard | None, *, approve: bool = False
    ) -> None:
        self._given = given
        self._keyboard = keyboard
        self._approve = approve
        self._asked: asyncio.Queue[HumanAsked] = asyncio.Queue()
        self._open: dict[NodeId, HumanAsked] = {}
        self._prompt: tuple[NodeId, asyncio.Future[str | None]] | None = None
        self.mistake: InputError | None = None
        self._used: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Apply an event."""
        if isinstance(event, HumanAsked):
            self._open[event.node] = event
            self._asked.put_nowait(event)
        elif isinstance(event, HumanAnswered | NodeFinished):
            self._open.pop(event.node, None)
            if self._prompt is not None and self._prompt[0] == event.node:
                self._prompt[1].cancel()

    def unused(self) -> list[str]:
        """The nodes with a given answer that did not ask."""
        return [node for node in self._given if node not in self._used]

    async def serve(self, run: AnswerableRun, progress: ProgressDisplay) -> None:
        """Answer questions until cancelled."""
        while True:
            question = await self._asked.get()
            await self._settle(question, run, progress)

    async def _settle(
        self, question: HumanAsked, run: AnswerableRun, progress: ProgressDisplay
    ) -> None:
        if not self._is_open(question):
            return  # answered elsewhere meanwhile
        key = next((k for k in (question.node, parent_of(question.node)) if k in self._given), None)
        if key is not None:
            self._used.add(key)
            try:
                self._answer(question, self._given[key], run)
            except InputError as error:
                error.node = question.node
                self.mistake = error
                run.pause(str(error))
        elif self._approve and question.tool:
            run.answer(question.node, True)
        elif self._keyboard is None or not await self._prompted(question, run, progress):
            run.decline(question.node)

    def _answer(self, question: HumanAsked, text: str, run: AnswerableRun) -> None:
        value = parse_answer(text, question.schema, question.arguments)
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
            if question.tool:
                print_call(console, question.tool, question.arguments)
            else:
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


def print_call(console: Console, tool: str, arguments: Mapping[str, object]) -> None:
    """Print the call of a tool that needs an approval: the tool, and its arguments as a table."""
    console.print(f"may {clean(tool)} be called?")
    rows = table("argument", "~value", header=False)
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json_text(plain(value))
        rows.add_row(f"  {clean(name)}", clean(text))
    if arguments:
        console.print(rows)
