"""The answer of a workflow as one text, said while it is written where that is possible. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.core.errors import ModelUnavailable
from weft.core.events import Event, NodeRerouted, NodeRetrying, NodeStreamed, jsonable
from weft.core.ids import NodeId
from weft.workflow.document import Document
from weft.workflow.document.leaves import ModelNode
from weft.workflow.document.step import Step
from weft.workflow.expressions import template, value_template

_ANSWERS = ("answer", "text")


def answer_of(document: Document) -> str | None:
    """The output that is the answer: `answer`, `text`, or the only one; None: all of them."""
    outputs = document.outputs
    found = next((name for name in _ANSWERS if name in outputs), None)
    return next(iter(outputs)) if found is None and len(outputs) == 1 else found


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=jsonable, ensure_ascii=False)


def writers_of(document: Document) -> frozenset[NodeId]:
    """The model nodes whose values the answer is made of."""
    name = answer_of(document)
    outputs = document.outputs if name is None else {name: document.outputs[name]}
    names = {used for value in outputs.values() for used in value_template(value).names}
    nodes = document.nodes
    return frozenset(NodeId(name) for name in names if isinstance(nodes.get(name), ModelNode))


def speaker_of(document: Document) -> NodeId | None:
    """The model node whose text is the answer, and nothing but its text; None if there is none."""
    name = answer_of(document)
    value = None if name is None else document.outputs[name]
    path = template(value).path if isinstance(value, str) else None
    if path is None or path.path or not speaks(document.nodes.get(path.name)):
        return None
    return NodeId(path.name)


def speaks(step: Step | None) -> bool:
    """True for a node whose value is the text that a model streams."""
    if not isinstance(step, ModelNode):
        return False
    several = step.samples is not None or step.think is not None
    return step.output_schema is None and not several and not step.tools


class Speech:
    """Follows the node that writes the answer, through its repetitions and its fallback.

    What has been said cannot be taken back: a repetition has to begin with it.
    """

    def __init__(self, nodes: Mapping[str, Step], speaker: NodeId | None) -> None:
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
