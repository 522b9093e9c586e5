"""Answers a run's questions: from the command line, from the terminal, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from weft.cli.answer import expected, parse_answer
from weft.cli.keyboard import Keyboard
from weft.cli.progress import Progress
from weft.cli.text import clean
from weft.cli.values import Json
from weft.core.errors import InputError, UnknownReference
from weft.core.events import Event, HumanAnswered, HumanAsked, NodeFinished
from weft.core.ids import NodeId
from weft.engine.trace import Trace

_QUIET_S = 0.5


class Asked(Protocol):
    """What a run offers to those who answer."""

    def answer(self, node: NodeId, value: Json) -> None:
        """Answer the question of `node`."""

    def pause(self, reason: str) -> None:
        """End it here, so that somebody can go on with it where it is recorded."""


class Questions:
    """A listener that collects questions; `serve` answers them, one after another.

    `given` are answers from the command line, by node. `keyboard` None: there is nobody to ask.
    A question that nobody can answer ends the run once nothing else is going on in it
    (`unanswered`); a given answer that does not fit ends it at once (`mistake`).
    """

    def __init__(self, trace: Trace, given: Mapping[str, str], keyboard: Keyboard | None) -> None:
        self._trace = trace
        self._given = given
        self._keyboard = keyboard
        self._asked: asyncio.Queue[HumanAsked] = asyncio.Queue()
        self._open: dict[NodeId, HumanAsked] = {}
        self._unanswerable: dict[NodeId, None] = {}
        self._heard = asyncio.Event()
        self._prompt: tuple[NodeId, asyncio.Future[str | None]] | None = None
        self.unanswered: tuple[NodeId, ...] = ()
        self.mistake: InputError | None = None
        self._used: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Take in one event. The trace has heard it before."""
        self._heard.set()
        if isinstance(event, HumanAsked):
            self._open[event.node] = event
            self._asked.put_nowait(event)
        elif isinstance(event, HumanAnswered | NodeFinished):
            self._open.pop(event.node, None)
            self._unanswerable.pop(event.node, None)
            if self._prompt is not None and self._prompt[0] == event.node:
                self._prompt[1].cancel()

    def unused(self) -> list[str]:
        """The nodes for which an answer was given that nobody asked for."""
        return [node for node in self._given if node not in self._used]

    async def serve(self, run: Asked, progress: Progress) -> None:
        """Answer questions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._end_when_stuck(run))
            while True:
                question = await self._asked.get()
                await self._settle(question, run, progress)

    async def _settle(self, question: HumanAsked, run: Asked, progress: Progress) -> None:
        if not self._is_open(question):
            return  # somebody else has answered meanwhile
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
            self._heard.set()

    def _answer(self, question: HumanAsked, text: str, run: Asked) -> None:
        value = parse_answer(text, question.schema)
        with suppress(UnknownReference):  # the question went away in the meantime
            run.answer(question.node, value)

    async def _prompted(self, question: HumanAsked, run: Asked, progress: Progress) -> bool:
        """Ask until there is an answer, or none is waited for; False when stdin ends."""
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
        """The next line; None when there is none, or no answer is waited for any more."""
        typing = asyncio.ensure_future(keyboard.line())
        self._prompt = node, typing
        try:
            await asyncio.wait([typing])
            return None if typing.cancelled() else typing.result()
        finally:
            typing.cancel()

    async def _end_when_stuck(self, run: Asked) -> None:
        while True:
            self._heard.clear()
            if self._unanswerable and self._trace.active.keys() <= self._unanswerable.keys():
                try:
                    # Not `wait_for`: it can swallow a cancellation that comes with what is heard.
                    async with asyncio.timeout(_QUIET_S):
                        await self._heard.wait()
                except TimeoutError:
                    self.unanswered = tuple(self._unanswerable)
                    run.pause(f"nobody can answer {', '.join(self.unanswered)} here")
                    return
            else:
                await self._heard.wait()
