"""Runs whose events are read while they go on, and a workflow's answer as one streamed text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from weft.core.errors import ModelUnavailable
from weft.core.events import Event, Listener, NodeRerouted, NodeRetrying, NodeStreamed, jsonable
from weft.core.ids import NodeId
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.spec.nodes import BaseNode, ModelNode
from weft.workflow.runtime.results.result import FlowResult


class WaitableRun(Protocol):
    """A run that has been prepared."""

    async def wait(self) -> FlowResult:
        """Run to the end."""


R = TypeVar("R", bound=WaitableRun)


class RunStream(Generic[R]):
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


class RunStreams:
    """Any number of runs at once; `aclose` ends them all, and then none may begin.

    `waits`: who leaves a run waits for its end; else `aclose` does.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self._waits = waits
        self._tasks: set[asyncio.Task[FlowResult]] = set()
        self.closed = False

    @asynccontextmanager
    async def start(self, make: Callable[[Listener], R]) -> AsyncGenerator[RunStream[R], None]:
        """The run that `make` prepares, under way as long as the context is open."""
        heard: asyncio.Queue[Event | None] = asyncio.Queue()
        run = make(heard.put_nowait)
        task = asyncio.create_task(run.wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            yield RunStream(run, task, heard)
        finally:
            task.cancel()
            if self._waits:
                await asyncio.wait((task,))

    async def aclose(self) -> None:
        """Cancel what runs, and wait for it."""
        self.closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


_ANSWERS = ("answer", "text")


def answer_of(document: WorkflowDocument) -> str | None:
    """The output that is the answer: `answer`, `text`, or the only one; None: all of them."""
    outputs = document.outputs
    found = next((name for name in _ANSWERS if name in outputs), None)
    return next(iter(outputs)) if found is None and len(outputs) == 1 else found


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=jsonable, ensure_ascii=False)


def writers_of(document: WorkflowDocument) -> frozenset[NodeId]:
    """The model nodes whose values the answer is made of."""
    name = answer_of(document)
    outputs = document.outputs if name is None else {name: document.outputs[name]}
    names = {used for value in outputs.values() for used in value_template(value).names}
    nodes = document.nodes
    return frozenset(NodeId(name) for name in names if isinstance(nodes.get(name), ModelNode))


def speaker_of(document: WorkflowDocument) -> NodeId | None:
    """The model node whose text is the answer, and nothing but its text; None if there is none."""
    name = answer_of(document)
    value = None if name is None else document.outputs[name]
    path = template(value).path if isinstance(value, str) else None
    if path is None or path.path or not speaks(document.nodes.get(path.name)):
        return None
    return NodeId(path.name)


def speaks(step: BaseNode | None) -> bool:
    """True for a node whose value is the text that a model streams."""
    if not isinstance(step, ModelNode):
        return False
    several = step.samples is not None or step.think is not None
    return step.output_schema is None and not several and not step.tools


class AnswerStream:
    """Follows the node that writes the answer, through its repetitions and its fallback.

    What has been said cannot be taken back: a repetition has to begin with it.
    """

    def __init__(self, nodes: Mapping[str, BaseNode], speaker: NodeId | None) -> None:
        self._nodes = nodes
        self._speaker = speaker
        self._said: list[str] = []
        self._length = 0
        self._at = 0
        """Characters that the present attempt has written."""

    def heard(self, event: Event) -> str:
        """The text that is new with `event`. Raises: `ModelUnavailable` on a contradiction."""
        match event:
            case NodeStreamed(node=node, text=text) if node == self._speaker:
                return self._say(text)
            case NodeRetrying(node=node) if node == self._speaker:
                self._at = 0
            case NodeRerouted(node=node, to=to) if node == self._speaker:
                self._at = 0
                name = to.rpartition("/")[2]
                self._speaker = to if speaks(self._nodes.get(name)) else None
        return ""

    def rest(self, answer: str) -> str:
        """What is still to be said of the whole `answer`. Raises: `ModelUnavailable`."""
        self._at = 0
        return self._say(answer) if len(answer) >= self._length else self._contradict()

    def _say(self, text: str) -> str:
        if self._at < self._length:
            if len(self._said) > 1:
                self._said = ["".join(self._said)]
            known = self._said[0][self._at : self._at + len(text)]
            if text[: len(known)] != known:
                self._contradict()
            self._at += len(known)
            text = text[len(known) :]
        if text:
            self._said.append(text)
            self._length += len(text)
            self._at = self._length
        return text

    def _contradict(self) -> Any:
        message = "the answer broke off after it had begun, and its repetition is another one"
        raise ModelUnavailable(message, node=self._speaker)
