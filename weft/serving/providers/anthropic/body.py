"""A model request as arguments of the Messages API (version 2026-10-21, or 2023-06-01)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from weft.core.content import Audio, ContentPart, File, Image
from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports.model import ModelRequest, Sampling
from weft.core.values import JsonSchema, Message, ToolSpec
from weft.serving.providers.answer import AnswerMemory, arguments_object
from weft.serving.providers.card import ModelCard
from weft.serving.providers.options import ProviderOptions, ThinkingMode
from weft.serving.providers.refusals import check_effort, check_sampling

Body = dict[str, Any]

SAMPLED_VERSION: Final = "2023-06-01"
"""The last version of the API in which requests have a temperature, for models that take one."""
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_SAMPLED: Final = ("temperature", "top_p", "top_k")
_THINKING: Final = ("reasoning_effort", "thinking_tokens")
_UNKNOWN_MAX_TOKENS: Final = 8192
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF: Final = "application/pdf"
_TEXT: Final = "text/"
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}
_NO_THOUGHT: Final = "none"
_LEAST_THOUGHT: Final = 1024


def body_of(
    request: ModelRequest, card: ModelCard, options: ProviderOptions, memory: AnswerMemory, who: str
) -> Body:
    """The arguments of one call, besides the model.

    Raises: `CapabilityError`, `ModelRequestError` for what the API does not take.
    """
    system, messages = _conversation(request.messages, memory, who)
    sampling = request.sampling
    body: Body = {
        "messages": messages,
        "max_tokens": sampling.most_tokens or card.max_output_tokens or _UNKNOWN_MAX_TOKENS,
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = {"type": _CHOICES[request.tool_choice]}
    if sampling.stop:
        body["stop_sequences"] = _stops(sampling.stop, who)
    return (
        body
        | _output_config(request, card, who)
        | _thinking(sampling, card, options, who, body["max_tokens"])
    )


def sampled(sampling: Sampling, options: ProviderOptions, who: str) -> Body:
    """Temperature, top_p and top_k as fields that only the older version of the API has.

    Raises: `CapabilityError`.
    """
    if options.api_version == SAMPLED_VERSION:
        check_sampling(sampling, who, (*_SAMPLED, *_THINKING))
        given = {name: getattr(sampling, name) for name in _SAMPLED}
        return {name: value for name, value in given.items() if value is not None}
    why = (
        f"; temperature 1 is what the model has; models that still take others do with"
        f" `api_version: '{SAMPLED_VERSION}'`"
    )
    neutral = (sampling.temperature, sampling.top_p, sampling.top_k or None) in (
        (1, None, None),
        (1, 1, None),
        (None, 1, None),
    )
    takes = (*_THINKING, *(_SAMPLED if neutral else ()))
    check_sampling(sampling, who, takes, why)
    return {}


def _output_config(request: ModelRequest, card: ModelCard, who: str) -> Body:
    config: Body = {}
    effort = request.sampling.reasoning_effort
    if effort is not None and effort != _NO_THOUGHT:
        efforts = EFFORTS if card.efforts is None else card.efforts
        check_effort(effort, who, (*efforts, _NO_THOUGHT))
        config["effort"] = effort
    if request.schema is not None:
        config["format"] = {"type": "json_schema", "schema": _closed(request.schema, who)}
    return {"output_config": config} if config else {}


def _thinking(
    sampling: Sampling, card: ModelCard, options: ProviderOptions, who: str, most: int
) -> Body:
    """`most`: the tokens of thought and answer together."""
    wanted: ThinkingMode | int | None = options.thinking
    if sampling.thinking_tokens is not None:
        wanted = sampling.thinking_tokens or "disabled"
    if sampling.reasoning_effort == _NO_THOUGHT:
        wanted = "disabled"
    if wanted is None:
        return {}
    mode = "enabled" if isinstance(wanted, int) else wanted
    if card.thinking_modes is not None and mode not in card.thinking_modes:
        known = ", ".join(card.thinking_modes) or "none"
        raise CapabilityError(
            f"{who} does not take thinking: {wanted}", hint=f"the model takes: {known}"
        )
    thinking: Body = {"type": mode}
    if mode != "disabled":
        thinking["display"] = "summarized"
    if isinstance(wanted, int):
        key = "thinking" if sampling.thinking_tokens is None else "thinking_tokens"
        _check_budget(key, wanted, most, who)
        thinking["budget_tokens"] = wanted
    return {"thinking": thinking}


def _check_budget(key: str, wanted: int, most: int, who: str) -> None:
    """Raises: `CapabilityError` for a budget that the API refuses; `key` is its setting."""
    if wanted < _LEAST_THOUGHT:
        raise CapabilityError(
            f"{who} does not take {key}: {wanted}; its least thought is {_LEAST_THOUGHT:,} tokens",
            hint=f"set {key} to {_LEAST_THOUGHT} or more, or switch the thought off with"
            " reasoning_effort: none",
        )
    if wanted >= most:
        raise CapabilityError(
            f"{who} does not take {key}: {wanted}: it counts within max_tokens, which is {most}",
            hint=f"raise max_tokens above {wanted}, or lower {key}",
        )


def _stops(stops: tuple[str, ...], who: str) -> list[str]:
    if blank := next((stop for stop in stops if not stop.strip()), None):
        raise CapabilityError(
            f"{who} does not take the stop {blank!r}",
            hint="this API stops at texts with something besides blanks",
        )
    return list(stops)


def _closed(schema: JsonSchema, who: str) -> JsonSchema:
    """`schema` as the API takes it: bounds of values become descriptions, objects are closed.

    weft checks the answer against the schema itself. Raises: `CapabilityError` for an object with
    free keys, which the API would hold to be empty.
    """
    from anthropic import transform_schema

    for part in _schemas(schema):
        extra = part.get("additionalProperties")
        free = isinstance(extra, Mapping) or "patternProperties" in part
        bare = part.get("type") == "object" and not part.get("properties") and extra is not False
        if free or bare:
            raise CapabilityError(
                f"{who} does not take the schema: an object in it has free keys",
                hint="name its properties, or ask for a list of {key, value}",
            )
    try:
        return transform_schema(dict(schema))
    except (AttributeError, TypeError, ValueError) as error:
        raise CapabilityError(f"{who} does not take the schema: {error}") from None


def _schemas(schema: object) -> Iterator[Mapping[str, Any]]:
    """Each mapping inside of `schema`; names of properties may look like keywords, to no harm."""
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _tool(tool: ToolSpec) -> Body:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
    }


def _conversation(
    messages: tuple[Message, ...], memory: AnswerMemory, who: str
) -> tuple[str, list[Body]]:
    """The system prompt, and turns that alternate: results of parallel calls are one turn."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    system = "\n\n".join(message.content for message in messages[:leading] if message.content)
    blocks = [(_role(m), block) for m in messages[leading:] for block in _blocks(m, memory, who)]
    turns: list[Body] = [
        {"role": role, "content": [block for _, block in group]}
        for role, group in groupby(blocks, itemgetter(0))
    ]
    if not turns:
        raise ModelRequestError("the conversation has no message with content besides the system's")
    return system, turns


def _role(message: Message) -> str:
    return "user" if message.role == "tool" else message.role


def _blocks(message: Message, memory: AnswerMemory, who: str) -> list[Any]:
    if message.role == "tool":
        return [
            {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id or "",
                "content": _content(message, who),
            }
        ]
    if message.tool_calls and (remembered := memory.blocks(message)) is not None:
        return list(remembered)
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)}
        for call in message.tool_calls
    ]
    return [*_content(message, who), *calls]


def _content(message: Message, who: str) -> list[Body]:
    parts = message.parts or (message.content,)
    return [_part(part, who) for part in parts if part != ""]


def _part(part: ContentPart, who: str) -> Body:
    match part:
        case str():
            return {"type": "text", "text": part}
        case Image() if part.media_type in _IMAGES:
            return {"type": "image", "source": _source(part)}
        case File() if part.media_type == _PDF:
            return _document(part, _source(part))
        case File() if part.media_type.startswith(_TEXT):
            text = part.data.decode("utf-8", "replace")
            return _document(part, {"type": "text", "media_type": "text/plain", "data": text})
    raise CapabilityError(
        f"{who} does not take {part}", hint="JPEG, PNG, GIF and WebP, PDF and text files"
    )


def _document(part: File, source: Body) -> Body:
    titled = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source, **titled}


def _source(part: Image | Audio | File) -> Body:
    data = b64encode(part.data).decode()
    return {"type": "base64", "media_type": part.media_type, "data": data}
