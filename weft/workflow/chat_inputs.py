"""A conversation as the inputs of a workflow. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.errors import InputError
from weft.core.values import Message
from weft.workflow.document import Document
from weft.workflow.document.declarations import InputSpec

_CONVERSATION = "messages"
_QUESTIONS = ("prompt", "question")


class ChatInputs:
    """Which inputs a chat fills.

    conversation  `messages`, if it takes a list: gets all messages, as {role, content}
    question      `prompt`, `question`, or else the only required text: gets the user's last words
    """

    def __init__(self, document: Document) -> None:
        inputs = document.inputs
        listed = _CONVERSATION in inputs and _may_be(inputs[_CONVERSATION], "array")
        self.conversation = _CONVERSATION if listed else None
        named = [name for name in _QUESTIONS if name in inputs and _may_be(inputs[name], "string")]
        required = [
            name
            for name, declared in inputs.items()
            if declared.required and declared.root.get("type") == "string"
        ]
        only = required[0] if len(required) == 1 else None
        self.question = named[0] if named else only

    def of(self, messages: tuple[Message, ...], given: object = None) -> dict[str, Any]:
        """The inputs for `messages`; those `given` by name count more.

        Raises: `InputError` when a text is needed and no user said one, or `given` is no mapping.
        """
        if given is not None and not isinstance(given, Mapping):
            raise InputError("`inputs` is not an object", hint='such as {"topic": "rivers"}')
        named = dict(given or {})
        values: dict[str, Any] = {}
        if self.conversation is not None:
            values[self.conversation] = [_turn(message) for message in messages]
        if self.question is not None and self.question not in named:
            values[self.question] = _last_said(messages)
        return {**values, **named}


def _may_be(declared: InputSpec, kind: str) -> bool:
    kinds = declared.root.get("type")
    return kinds is None or kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _turn(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    return turn


def _last_said(messages: tuple[Message, ...]) -> str:
    for message in reversed(messages):
        if message.role == "user":
            return message.content
    raise InputError("nobody asks anything", hint="send a message of the role user")
