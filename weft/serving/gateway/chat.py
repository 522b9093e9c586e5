"""`POST /v1/chat/completions`: reads and checks a request, and makes model requests from it.

Clients are not trusted. Drafting decoders keep tables and read folders, and some text options name
a file of this machine, so only the workflow file may set them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from weft.core.compute_thread import run_in_compute_thread
from weft.core.errors import SpecError
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
from weft.serving.gateway.admission import AdmissionQueue
from weft.serving.gateway.body import (
    ChatBody,
    ChatMessage,
    ChosenTool,
    chat_body,
    check_honoured,
    further_fields,
)
from weft.serving.gateway.completion import CheckedChat, CompletionWriter, ServedModel, while_wanted
from weft.serving.gateway.exchange import GatewayExchange, GatewayMetrics
from weft.serving.gateway.json_body import read_json
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import ApiProblem, RequestRefused, bad_request, problem_of
from weft.serving.gateway.reply import GatewayResponse
from weft.validation import SchemaRefused, compile_schema

ToolChoice = Literal["auto", "none", "required"]
_ANY_OBJECT: JsonSchema = {"type": "object"}
_ROLES: Mapping[str, Role] = {"developer": "system"}


def requests_of(
    body: ChatBody,
    extra: Mapping[str, Any],
    timeout_s: float,
    decode: DecodeSpec = AUTOREGRESSIVE,
) -> list[ModelRequest]:
    """One request for each of the `n` choices, each with its own seed if there is one.

    Raises: `RequestRefused` with 400 when parts of the body contradict each other.
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


_MAX_CHARS = 1_000_000
"""The most characters of all schemas of a request."""


async def check_schemas(request: ModelRequest) -> None:
    """Raises: `RequestRefused` with 400 for unusable or too many schemas."""
    schemas = list(_schemas(request))
    if schemas:  # in a thread: there may be hundreds
        await run_in_compute_thread(_check, schemas)


def _schemas(request: ModelRequest) -> Iterator[tuple[str, JsonSchema]]:
    if request.schema is not None:
        yield "response_format", request.schema
    for index, tool in enumerate(request.tools):
        yield f"tools[{index}].function.parameters", tool.parameters


def _check(schemas: list[tuple[str, JsonSchema]]) -> None:
    chars = 0
    for field, schema in schemas:
        chars += len(json.dumps(schema))
        if chars > _MAX_CHARS:
            raise bad_request(f"schemas of more than {_MAX_CHARS:,} characters", field)
        try:
            compile_schema(schema)
        except SchemaRefused as error:
            raise bad_request(f"`{field}`: {error}", field, "invalid_value") from None


async def named_decoder(text: str | None) -> DecodeSpec:
    """The decoder of that name; None: plain decoding. Raises: `RequestRefused` with 400."""
    if text is None:
        return AUTOREGRESSIVE
    try:
        spec = await asyncio.to_thread(_parsed, text)
    except SpecError as error:
        raise bad_request(str(error), "decode", "invalid_value") from None
    except ImportError:
        raise _unsupported("decoders are named to models of this process; it has none") from None
    if texts := [name for name, value in spec.options if isinstance(value, str)]:
        raise _unsupported(f"the decoder's option {texts[0]!r} is for the workflow file to set")
    return spec


def _parsed(text: str) -> DecodeSpec:
    # Importing the decoders imports torch, which takes seconds and may not be installed.
    from weft.decoding.decoders import parse_decode
    from weft.decoding.diffusion.catalogue import NAMES
    from weft.decoding.options import PLAIN_NAMES

    spec = parse_decode(text)
    if spec.method not in (*NAMES, *PLAIN_NAMES):
        raise _unsupported(f"the decoder {spec.method!r} is for the workflow file to name")
    return spec


def _unsupported(message: str) -> RequestRefused:
    return bad_request(message, "decode", "unsupported")


_TIMEOUT_HEADER = "x-weft-timeout-ms"
_LONGEST_NAME = 80
_EFFORT = "reasoning_effort"


class ChatEndpoint:
    """An ASGI application. Setting `stopped` ends running requests."""

    def __init__(
        self,
        models: Mapping[str, ServedModel],
        options: GatewayOptions,
        admission: AdmissionQueue,
        metrics: GatewayMetrics,
        stopped: asyncio.Event,
    ) -> None:
        self._models = models
        self._options = options
        self._admission = admission
        self._metrics = metrics
        self._stopped = stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = GatewayExchange.of(scope)
        response = GatewayResponse(send)
        try:
            checked = await self._checked(Headers(scope=scope), receive, exchange)
            writer = CompletionWriter(checked, exchange, self._admission, self._metrics)
            await while_wanted(writer.write(response), response, receive, self._stopped)
        except ClientDisconnect:
            exchange.gone = True
        except Exception as error:  # noqa: BLE001 - every error goes to the client
            exchange.error = f"{type(error).__name__}: {error}"
            await response.fail(problem_of(error, exchange.id))

    async def _checked(
        self, headers: Headers, receive: Receive, exchange: GatewayExchange
    ) -> CheckedChat:
        timeout_s = _timeout_s(headers.get(_TIMEOUT_HEADER), self._options.timeout_s)
        raw = await read_json(
            receive, headers, self._options.max_body_bytes, self._options.body_timeout_s
        )
        body = chat_body(raw, self._options.max_messages)
        served = served_model(self._models, body.model)
        exchange.model = served.name
        if (body.n or 1) > self._options.max_choices:
            raise bad_request(f"more than {self._options.max_choices} choices", "n")
        extra, unthinking = await _extra(raw, body, served)
        if served.runs:
            extra["began"] = exchange.runs.append
        options = body.stream_options
        requests = requests_of(body, extra, timeout_s, await named_decoder(body.decode))
        if unthinking:
            requests = [_without_thought(request) for request in requests]
        await check_schemas(requests[0])
        served.check(requests[0])
        return CheckedChat(
            served,
            requests,
            timeout_s,
            self._options.keep_alive_s,
            bool(body.stream),
            bool(options and options.include_usage),
        )


def served_model(models: Mapping[str, ServedModel], name: str) -> ServedModel:
    """The model of that name. Raises: `RequestRefused` with 404."""
    if name in models:
        return models[name]
    names = ", ".join(models)
    message = f"there is no model {name[:_LONGEST_NAME]!r}; there is: {names}"
    raise RequestRefused(ApiProblem(404, message, code="model_not_found", param="model"))


def _without_thought(request: ModelRequest) -> ModelRequest:
    return replace(request, sampling=replace(request.sampling, thinking_tokens=0))


async def _extra(
    raw: Mapping[str, Any], body: ChatBody, served: ServedModel
) -> tuple[dict[str, Any], bool]:
    """The further fields for the model, and whether it is to be kept from thinking by weft.

    `reasoning_effort: none` means no thought; a model that does not know the field may still be
    able to do that. Raises: `RequestRefused`; what the model raises.
    """
    unthinking = False
    extra = further_fields(raw)
    honoured = served.fields
    if not extra.keys() <= honoured:
        offered = await served.client.capabilities()
        honoured |= frozenset(offered.extra_fields)
        if offered.thinking and not served.runs and _EFFORT not in honoured:
            unthinking = extra.get(_EFFORT) == "none"
            if unthinking:
                del extra[_EFFORT]
    check_honoured(extra, honoured)
    if "stream" in served.fields:
        extra["stream"] = bool(body.stream)
    return extra, unthinking


def _timeout_s(header: str | None, longest_s: float) -> float:
    if header is None:
        return longest_s
    if not (header.isascii() and header.isdigit() and 0 < len(header) < 16 and int(header)):
        raise bad_request(f"the header {_TIMEOUT_HEADER} is a number of milliseconds")
    return min(int(header) / 1000, longest_s)
