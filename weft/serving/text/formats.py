"""Formats of tool calls in plain text, and the calls in such a text.

hermes   `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`: Hermes, Qwen
json     `{"name": ..., "parameters": {...}}` at the beginning of a line: Llama 3
mistral  `[TOOL_CALLS][{...}, ...]` or `[TOOL_CALLS]name[ARGS]{...}`: Mistral

JSON is cut into its parts without rewriting them: numbers and escapes stay unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from weft.core.ports.model import ReasoningDelta, TextDelta


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A complete tool call. `arguments` is the JSON object as the model wrote it, unchecked."""

    name: str
    arguments: str


Piece = TextDelta | ReasoningDelta | FoundCall


_BLANKS = re.compile(r"[ \t\n\r]*")


def members(text: str) -> dict[str, str]:
    """The raw JSON text of each member of the object `text`.

    Raises: `ValueError` when it is no object, `RecursionError` when it is nested too deeply.
    """
    if not isinstance(_checked(text), dict):
        raise ValueError("no JSON object")  # noqa: TRY004 (callers catch what JSON raises)
    found: dict[str, str] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, at = _DECODER.raw_decode(text, start)
        found[key] = text[start:at]
        at = _next(text, at)
    return found


def items(text: str) -> list[str]:
    """The raw JSON text of each item of the array `text`. Raises: as `members`."""
    if not isinstance(_checked(text), list):
        raise ValueError("no JSON array")  # noqa: TRY004
    found: list[str] = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _next(text, end)
    return found


def _checked(text: str) -> object:
    return json.loads(text, parse_constant=_refuse)


def _skip(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()


def _next(text: str, at: int) -> int:
    """The index after the comma that follows a part, if there is one."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder()


FormatName = Literal["hermes", "json", "mistral"]

_MAX_HEAD = 256
_NAMED = re.compile(r"\s*([\w.-]{1,128})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*")


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A format of tool calls.

    `opening` begins a call, `opening_at_line` where only blank space precedes it in its line. A
    part of one of `literals` is held back until the rest has come. `closing` may follow a call,
    `separators` may come between calls. `named`: the name may come before the arguments.
    `known_only`: a call of an unknown tool is text, since it may be any JSON. `key` is the name of
    the arguments.
    """

    opening: re.Pattern[str]
    opening_at_line: re.Pattern[str]
    literals: tuple[str, ...]
    closing: str = ""
    separators: str = ""
    named: bool = False
    known_only: bool = False
    key: str = "arguments"

    def begins_body(self, head: str, char: str) -> bool:
        """Whether `char` is the first bracket of the JSON after `head`."""
        if not head or head.isspace():
            return char in "{["
        return self.named and char == "{" and _NAMED.fullmatch(head) is not None

    def may_be_head(self, head: str) -> bool:
        """False once no call can follow `head`, the text since the opening."""
        if len(head) > _MAX_HEAD or "{" in head:
            return False
        return self.named or head.isspace()

    def read(self, head: str, body: str, known: Collection[str]) -> list[FoundCall] | None:
        """The calls in `body`, a JSON object or array; None when it is no call."""
        named = _NAMED.fullmatch(head)
        try:
            if named:
                members(body)
                return [FoundCall(named[1], body)]
            found = [_call(text) for text in (items(body) if body[0] == "[" else [body])]
        except (ValueError, RecursionError):
            return None
        if self.known_only and any(call.name not in known for call in found):
            return None
        return found or None


def _call(text: str) -> FoundCall:
    """Raises: `ValueError` when the JSON in `text` is no call."""
    fields = members(text)
    name = json.loads(fields.get("name", "null"))
    if not isinstance(name, str) or not name:
        raise ValueError("a call needs a name")
    arguments = fields.get("arguments", fields.get("parameters", "{}"))
    if arguments.startswith('"'):
        arguments = json.loads(arguments)
    if arguments == "null":
        arguments = "{}"
    members(arguments)
    return FoundCall(name, arguments)


def _marked(opening: str, closing: str = "", *, named: bool = False) -> ToolFormat:
    pattern = re.compile(re.escape(opening))
    return ToolFormat(pattern, pattern, (opening,), closing, named=named)


_TAG = "<|python_tag|>"
_TAGGED = re.escape(_TAG)
FORMATS: Mapping[FormatName, ToolFormat] = {
    "hermes": _marked("<tool_call>", "</tool_call>"),
    "json": ToolFormat(
        re.compile(rf"(?<=\n)[^\S\n]*(?=[{{\[])|{_TAGGED}"),
        re.compile(rf"(?:\A|(?<=\n))[^\S\n]*(?=[{{\[])|{_TAGGED}"),
        (_TAG,),
        separators=";,",
        known_only=True,
        key="parameters",
    ),
    "mistral": _marked("[TOOL_CALLS]", named=True),
}
