"""Tool descriptions and tool calls in plain messages, for servers without tool calling.

Does not read answers. The hermes wording follows the training data of Hermes and Qwen models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from weft.core.ports.model import ModelRequest
from weft.core.values import Message, ToolCall, ToolSpec
from weft.serving.text.formats import FORMATS, FormatName

_MUST = "\n\nYou must answer with at least one call."


def spell(request: ModelRequest, spelling: FormatName) -> ModelRequest:
    """`request` with its tools, and the calls and results of earlier turns, as text.

    A `tool_choice` of "none" leaves the tools out. With tools the schema is left out: a server that
    constrains the output to it would allow no call.
    """
    offered = request.tools if request.tool_choice != "none" else ()
    messages = [_turn(group, spelling) for group in _turns(request.messages)]
    if offered:
        section = _describe(offered, spelling) + _MUST * (request.tool_choice == "required")
        messages = _with_system(messages, section)
    return replace(
        request,
        messages=tuple(messages),
        tools=(),
        tool_choice="auto",
        schema=None if offered else request.schema,
    )


def wire_calls(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Tool calls in the form of OpenAI's protocol and of chat templates."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]


def _with_system(messages: list[Message], section: str) -> list[Message]:
    first = messages[0]
    if first.role != "system":
        return [Message("system", section), *messages]
    return [replace(first, content=f"{first.content}\n\n{section}"), *messages[1:]]


def _describe(tools: Iterable[ToolSpec], spelling: FormatName) -> str:
    signatures = "\n".join(
        _json(
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
        )
        for tool in tools
    )
    example = f'{{"name": <function-name>, "{FORMATS[spelling].key}": <args-json-object>}}'
    match spelling:
        case "hermes":
            how = (
                "For each function call, return a json object with function name and arguments"
                f" within <tool_call></tool_call> XML tags:\n<tool_call>\n{example}\n</tool_call>"
            )
        case "json":
            how = (
                "To call functions, answer with nothing but a JSON object for each call, on a line"
                f" of its own:\n{example}"
            )
        case "mistral":
            how = f"To call functions, answer with a list of calls:\n[TOOL_CALLS][{example}]"
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>\n{signatures}\n</tools>\n\n{how}"
    )


def _turns(messages: Iterable[Message]) -> Iterable[list[Message]]:
    """The turns; parallel results are one, since many templates need alternating roles."""
    for is_result, group in groupby(messages, lambda message: message.role == "tool"):
        if is_result:
            yield list(group)
        else:
            yield from ([message] for message in group)


def _turn(messages: list[Message], spelling: FormatName) -> Message:
    first = messages[0]
    if first.role == "tool":
        results = (f"<tool_response>\n{m.content}\n</tool_response>" for m in messages)
        return Message("user", "\n".join(results))
    if not first.tool_calls:
        return first
    calls = _calls(first.tool_calls, spelling)
    return Message(first.role, f"{first.content}\n{calls}" if first.content else calls)


def _calls(calls: Iterable[ToolCall], spelling: FormatName) -> str:
    key = FORMATS[spelling].key
    texts = [f'{{"name": {_json(call.name)}, "{key}": {call.arguments}}}' for call in calls]
    match spelling:
        case "hermes":
            return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)
        case "json":
            return "\n".join(texts)
        case "mistral":
            return f"[TOOL_CALLS][{', '.join(texts)}]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
