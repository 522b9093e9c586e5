"""A model request as arguments of generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from weft.core.content import ContentPart, File
from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports.model import ModelRequest, Sampling
from weft.core.values import Message, ToolSpec
from weft.serving.providers.answer import AnswerMemory, arguments_object
from weft.serving.providers.card import ModelCard
from weft.serving.providers.options import ProviderOptions
from weft.serving.providers.refusals import check_effort, check_sampling

Body = dict[str, Any]

OWN_CALL_ID: Final = "weft-call-"
"""The beginning of ids of calls to which the API gave none."""
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
_TAKES: Final = (
    *("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"),
    *("reasoning_effort", "thinking_tokens"),
)
_MOST_STOPS: Final = 5
_ROLES: Final = {"assistant": "model", "tool": "user"}
_CHOICES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_FILES: Final = ("application/pdf", "text/")


def contents_of(request: ModelRequest, memory: AnswerMemory, who: str) -> list[Body]:
    """The turns of the conversation besides the system's. Raises: `CapabilityError`."""
    names = {call.id: call.name for message in request.messages for call in message.tool_calls}
    parts = [
        (_ROLES.get(message.role, "user"), part)
        for message in request.messages
        if message.role != "system"
        for part in _parts(message, names, memory, who)
    ]
    turns = [
        {"role": role, "parts": [part for _, part in group]}
        for role, group in groupby(parts, itemgetter(0))
    ]
    if not turns:
        raise ModelRequestError("the conversation has no message with content besides the system's")
    return turns


def config_of(request: ModelRequest, card: ModelCard, options: ProviderOptions, who: str) -> Body:
    """The configuration of one call. Raises: `CapabilityError`, `ModelRequestError`."""
    sampling = request.sampling
    check_sampling(sampling, who, _TAKES)
    config: Body = {
        "system_instruction": _system(request.messages, who),
        "max_output_tokens": sampling.most_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "stop_sequences": _stops(sampling.stop, who),
        "thinking_config": _thinking(sampling, card, options, who),
        # Loops and continuations are the engine's.
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
    }
    if request.tools:
        config["tools"] = [{"function_declarations": [_tool(tool) for tool in request.tools]}]
        choice = _CHOICES[request.tool_choice]
        config["tool_config"] = {"function_calling_config": {"mode": choice}}
    if request.schema is not None:
        config["response_mime_type"] = "application/json"
        config["response_json_schema"] = dict(request.schema)
    return {name: value for name, value in config.items() if value is not None}


def _system(messages: tuple[Message, ...], who: str) -> str | None:
    """The system prompt, which stands before the conversation and nowhere else."""
    begun = False
    for message in messages:
        begun = begun or message.role != "system"
        if begun and message.role == "system":
            raise CapabilityError(
                f"{who} does not take messages of the role system after the first turn",
                hint="put it into the first message of the role system",
            )
    return "\n\n".join(m.content for m in messages if m.role == "system" and m.content) or None


def _thinking(
    sampling: Sampling, card: ModelCard, options: ProviderOptions, who: str
) -> Body | None:
    effort, wanted = sampling.reasoning_effort, options.thinking
    check_effort(effort, who, EFFORTS)
    if effort is None and sampling.thinking_tokens is not None:
        wanted = sampling.thinking_tokens or "disabled"
    if effort == "none" or (effort is None and wanted == "disabled"):
        return {"thinking_budget": 0}
    thinking: Body = {}
    if effort is not None:
        thinking["thinking_level"] = effort.upper()
    elif isinstance(wanted, int):
        thinking["thinking_budget"] = wanted
    if thinking or wanted == "adaptive" or card.thinks:
        return {**thinking, "include_thoughts": True}
    return None


def _stops(stops: tuple[str, ...], who: str) -> list[str] | None:
    if len(stops) > _MOST_STOPS:
        raise CapabilityError(
            f"{who} does not take {len(stops)} texts as stop", hint=f"it takes {_MOST_STOPS}"
        )
    return list(stops) or None


def _tool(tool: ToolSpec) -> Body:
    declared: Body = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties"):  # without any, the API wants no schema
        declared["parameters_json_schema"] = dict(tool.parameters)
    return declared


def _parts(message: Message, names: Mapping[str, str], memory: AnswerMemory, who: str) -> list[Any]:
    if message.role == "tool":
        return [_result(message, names, who)]
    if message.tool_calls and (remembered := memory.blocks(message)) is not None:
        return list(remembered)
    calls: list[Body] = [
        {"function_call": _id(call.id) | {"name": call.name, "args": arguments_object(call)}}
        for call in message.tool_calls
    ]
    parts = message.parts or (message.content,)
    return [*(_part(part, who) for part in parts if part != ""), *calls]


def _result(message: Message, names: Mapping[str, str], who: str) -> Body:
    if message.media:
        raise CapabilityError(
            f"{who} does not take {message.media[0]} as a tool's result",
            hint="send it in a message of the user",
        )
    call_id = message.tool_call_id or ""
    name = names.get(call_id)
    if name is None:
        raise ModelRequestError(f"a tool's result answers the call {call_id!r}, which is not there")
    response = {"result": message.content}
    return {"function_response": _id(call_id) | {"name": name, "response": response}}


def _id(call_id: str) -> Body:
    return {} if call_id.startswith(OWN_CALL_ID) else {"id": call_id}


def _part(part: ContentPart, who: str) -> Body:
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, File) and not part.media_type.startswith(_FILES):
        raise CapabilityError(f"{who} does not take {part}", hint="PDF and text files")
    return {"inline_data": {"mime_type": part.media_type, "data": part.data}}
