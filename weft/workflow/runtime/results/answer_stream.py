"""A workflow's answer as one streamed text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.core.errors import ModelUnavailable
from weft.core.events import (
    Event,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeStreamed,
    jsonable,
)
from weft.core.ids import NodeId
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.spec.nodes import BaseNode, ModelNode

_ANSWERS = ("answer", "text")


def answer_of(document: WorkflowDocument) -> str | None:
    """The output that is the answer: `answer`, `text`, or the only one; None: all of them."""
    outputs = document.outputs
    name = next((each for each in _ANSWERS if each in outputs), None)
    return next(iter(outputs)) if name is None and len(outputs) == 1 else name


def as_text(value: object) -> str:
    """Texts as they are, other values as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=jsonable, ensure_ascii=False)


def writers_of(document: WorkflowDocument) -> frozenset[NodeId]:
    """The model nodes whose values the answer contains."""
    name = answer_of(document)
    outputs = document.outputs if name is None else {name: document.outputs[name]}
    names = {used for value in outputs.values() for used in value_template(value).names}
    nodes = document.nodes
    return frozenset(NodeId(name) for name in names if isinstance(nodes.get(name), ModelNode))


def speaker_of(document: WorkflowDocument) -> NodeId | None:
    """The model node whose text is exactly the answer; None if there is none."""
    name = answer_of(document)
    value = None if name is None else document.outputs[name]
    path = template(value).path if isinstance(value, str) else None
    if path is None or path.path or not speaks(document.nodes.get(path.name)):
        return None
    return NodeId(path.name)


def speaks(step: BaseNode | None) -> bool:
    """True for a node whose value is exactly the text that a model streams."""
    if not isinstance(step, ModelNode):
        return False
    several = step.samples is not None or step.think is not None
    return step.output_schema is None and not several and not step.tools


class AnswerStream:
    """The streamed text of the node that writes the answer, through its retries and its fallback.

    Text that was sent cannot be taken back: a repetition must begin with it.
    """

    def __init__(self, nodes: Mapping[str, BaseNode], speaker: NodeId | None) -> None:
        self._nodes = nodes
        self._speaker = speaker
        self._sent: list[str] = []
        self._length = 0
        self._at = 0
        """Characters written by the current attempt."""

    def take(self, event: Event) -> str:
        """The text that is new with `event`. Raises: `ModelUnavailable` on a contradiction."""
        match event:
            case NodeStreamed(node=node, text=text) if node == self._speaker:
                return self._send(text)
            case NodeRepairing(node=node) | NodeRetrying(node=node) if node == self._speaker:
                self._at = 0
            case NodeRerouted(node=node, to=to) if node == self._speaker:
                self._at = 0
                name = to.rpartition("/")[2]
                self._speaker = to if speaks(self._nodes.get(name)) else None
        return ""

    def rest(self, answer: str) -> str:
        """The unsent rest of the whole `answer`. Raises: `ModelUnavailable`."""
        self._at = 0
        return self._send(answer) if len(answer) >= self._length else self._contradict()

    def _send(self, text: str) -> str:
        if self._at < self._length:
            if len(self._sent) > 1:
                self._sent = ["".join(self._sent)]
            repeated = self._sent[0][self._at : self._at + len(text)]
            if text[: len(repeated)] != repeated:
                self._contradict()
            self._at += len(repeated)
            text = text[len(repeated) :]
        if text:
            self._sent.append(text)
            self._length += len(text)
            self._at = self._length
        return text

    def _contradict(self) -> Any:
        message = "the answer broke off after it had begun, and its repetition is another one"
        raise ModelUnavailable(message, node=self._speaker)
