"""A chat completion request as requests to a model, one for each choice. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from weft.core.ports import ModelRequest, Sampling
from weft.core.values import (
    AUTOREGRESSIVE,
    DecodeSpec,
    JsonSchema,
    Message,
    Role,
    ToolCall,
    ToolSpec,
)
from weft.serving.gateway.body import ChatBody, ChatMessage, ChosenTool
from weft.serving.gateway.problem import bad_request

ToolChoice = Literal["auto", "none", "required"]
_ANY_OBJECT: JsonSchema = {"type": "object"}
_ROLES: Mapping[str, Role] = {"developer": "system"}


def requests_of(
    body: ChatBody,
    extra: Mapping[str, Any],
    timeout_s: float,
    decode: DecodeSpec = AUTOREGRESSIVE,
) -> list[ModelRequest]:
    """One request for each of the `n` choices; with a seed, each has its own.

    Raises: `Refused` with 400 when parts of the body contradict each other.
    """
    tools, choice = _tools(body)
    first = ModelRequest(
        tuple(_message(message) for message in body.messages),
        sampling=_sampling(body),
        schema=_schema(body),
        tools=tools,
        tool_choice=choice,
        timeout_s=timeout_s,
        extra=extra,
        decode=decode,
    )
    seed = body.seed
    if seed is None:
        return [first] * (body.n or 1)
    return [
        replace(first, sampling=replace(first.sampling, seed=seed + index))
        for index in range(body.n or 1)
    ]


def _message(message: ChatMessage) -> Message:
    calls = tuple(
        ToolCall(call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
    )
    role: Role = _ROLES[message.role] if message.role == "developer" else message.role
    return Message(role, message.text, calls, message.tool_call_id)


def _sampling(body: ChatBody) -> Sampling:
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Sampling(
        body.max_completion_tokens or body.max_tokens,
        body.temperature,
        body.top_p,
        body.top_k,
        stop,
        body.seed,
        tuple(body.stop_token_ids or ()),
    )


def _schema(body: ChatBody) -> JsonSchema | None:
    wanted = body.response_format
    if wanted is None or wanted.type == "text":
        return None
    return _ANY_OBJECT if wanted.json_schema is None else wanted.json_schema.json_schema


def _tools(body: ChatBody) -> tuple[tuple[ToolSpec, ...], ToolChoice]:
    tools = tuple(
        ToolSpec(
            tool.function.name,
            tool.function.description or "",
            tool.function.parameters or _ANY_OBJECT,
        )
        for tool in body.tools or ()
    )
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise bad_request("two tools have one name", "tools")
    if isinstance(body.tool_choice, ChosenTool):
        name = body.tool_choice.function.name
        if name not in names:
            raise bad_request(f"there is no tool {name!r} in `tools`", "tool_choice")
        return tuple(tool for tool in tools if tool.name == name), "required"
    if body.tool_choice == "required" and not tools:
        raise bad_request("there are no `tools`", "tool_choice")
    return tools, body.tool_choice or "auto"
