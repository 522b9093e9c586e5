"""A model request as the JSON body that a server accepts.

A vLLM server of a diffusion model receives decoder, temperature and seed as arguments of weft's
plugin. A server that drafts receives the name of the program's node.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from weft.core.content import Audio, ContentPart, File, Image
from weft.core.errors import CapabilityError, ModelRequestError, SpecError
from weft.core.ports.model import (
    TEMPLATE_KWARGS,
    Capabilities,
    ModelRequest,
    check_media,
    template_kwargs,
)
from weft.core.schema import closed
from weft.core.values import AUTOREGRESSIVE, JsonSchema, Lossless, Message, ToolSpec
from weft.decoding.options import PLAIN_NAMES, format_decoder
from weft.serving.extra_arguments import DECODE, FIELD, NODE, RESERVED_FIELDS, SEED, TEMPERATURE
from weft.serving.openai.server import SELF_HOSTED, Server
from weft.serving.openai.strict import is_strict
from weft.serving.text.prompt import wire_calls

_MOVED: Final = {"temperature": TEMPERATURE, "seed": SEED}
_PLAIN: Final = "sequential"
_REPETITION: Final[Mapping[str, str]] = {"llamacpp": "repeat_penalty"}


def check_decoder(request: ModelRequest, server: Server) -> None:
    """Raises: `CapabilityError` for a decoder that this server does not offer per call."""
    decode = request.decode
    if decode == AUTOREGRESSIVE or (server.diffuses and decode.method in PLAIN_NAMES):
        return
    if not server.diffuses:
        raise CapabilityError(
            f"this server cannot be asked for the decoder {decode.method!r} per call",
            hint="a server is started with its decoder; only those of diffusion models take others",
        )
    from weft.decoding.diffusion.catalogue import preset

    try:
        plain = preset(decode.method).plain
    except SpecError as error:
        raise CapabilityError(error.message, hint=error.hint) from error
    if isinstance(decode, Lossless) and not plain:
        raise CapabilityError(
            f"the decoder {decode.method!r} may change the text",
            hint="ask for it as a lossy one, if that is what you want",
        )


def with_diffusion_arguments(
    body: dict[str, Any], request: ModelRequest, server: Server
) -> dict[str, Any]:
    """The body with decoder, temperature and seed in the plugin's arguments, for diffusion."""
    given = body.get(FIELD, {})
    if not server.diffuses or not isinstance(given, Mapping):
        return body
    rest = {name: value for name, value in body.items() if name not in _MOVED}
    ours = {_MOVED[name]: value for name, value in body.items() if name in _MOVED}
    if request.decode != AUTOREGRESSIVE:
        plain = request.decode.method in PLAIN_NAMES
        ours[DECODE] = _PLAIN if plain else format_decoder(request.decode)
    return {**rest, FIELD: {**given, **ours}} if ours else rest


Body = dict[str, Any]


def check_extra(extra: Mapping[str, Any]) -> None:
    """Raises: `ModelRequestError` when `extra` names a field that weft sets itself."""
    taken = sorted(RESERVED_FIELDS & extra.keys())
    if taken:
        raise ModelRequestError(
            f"extra fields {', '.join(taken)} belong to weft",
            hint="say it with the request's own fields, or ask several times instead of n",
        )


def body_of(
    request: ModelRequest, server: Server, offered: Capabilities, *, tagged: bool = False
) -> Body:
    """The body without `model` and `stream`, for `/completions` when the request has token ids.

    `tagged`: the answer is searched for tags, so special tokens have to be in the text.

    Raises: `CapabilityError`, `ModelRequestError` when the server cannot serve the request.
    """
    _check(request, server, offered)
    body: Body = {"stream_options": {"include_usage": True}}
    if request.prompt_token_ids:
        body["prompt"] = list(request.prompt_token_ids)
    else:
        body |= conversation(request)
    if request.tools:
        body["tools"] = [_tool(tool, server) for tool in request.tools]
        body["tool_choice"] = request.tool_choice
    if request.schema is not None:
        body["response_format"] = _format(request.schema, server)
    if request.grammar is not None:
        body["structured_outputs"] = {"grammar": request.grammar}
    if tagged and server.kind in {"vllm", "sglang"}:
        body["skip_special_tokens"] = False
    body |= _sampling(request, server) | _extensions(request, server, offered)
    return _with_extra(body, request.extra)


def _with_extra(body: Body, extra: Mapping[str, Any]) -> Body:
    """Raises: `ModelRequestError` when `extra` would overwrite a field."""
    taken = sorted(name for name in extra.keys() & body.keys() if extra[name] != body[name])
    if taken:
        raise ModelRequestError(
            f"extra fields {', '.join(taken)} are set by weft too", hint="say it in one place"
        )
    return body | dict(extra)


def with_template(body: Body, *sources: Mapping[str, Any]) -> Body:
    """`body` with what `sources` say of the chat template: its variables, the later ones win.

    Raises: `ModelRequestError` for variables that are no mapping.
    """
    kwargs = {name: value for each in sources for name, value in template_kwargs(each).items()}
    templates = [each[_TEMPLATE] for each in sources if each.get(_TEMPLATE) is not None]
    chosen = {_TEMPLATE: templates[-1]} if templates else {}
    return body | chosen | ({TEMPLATE_KWARGS: kwargs} if kwargs else {})


_TEMPLATE: Final = "chat_template"


def _check(request: ModelRequest, server: Server, offered: Capabilities) -> None:
    check_extra(request.extra)
    check_decoder(request, server)
    check_media(request, f"a server of the kind {server.kind}", offered.media)
    if (request.schema is not None or request.tools) and server.diffuses:
        raise CapabilityError(
            "a diffusion model inside vLLM is held to no schema, and calls no tools",
            hint="the same model in this process (`use: local`) fills schemas in",
        )
    if request.adapter is not None and request.adapter not in offered.adapters:
        there = ", ".join(offered.adapters) or "none"
        raise CapabilityError(
            f"this server has no adapter {request.adapter!r}", hint=f"it lists: {there}"
        )
    if request.grammar is not None and "structured_outputs" in request.extra:
        raise ModelRequestError("a grammar and the extra field structured_outputs are two of one")
    if request.grammar is not None and not offered.grammar:
        raise CapabilityError(
            "this server is not known to hold its output to a grammar",
            hint="vLLM 0.12 or later does, as `weft serve` starts it, and so does a local model",
        )
    if request.continues and not offered.continuation:
        raise CapabilityError(
            "this server is not known to go on with an unfinished answer",
            hint="end the messages with one of the user; vLLM and local models can go on",
        )
    if request.prompt_token_ids and not offered.prompt_token_ids:
        raise CapabilityError(
            "this server is not known to take prompt token ids", hint="send messages instead"
        )
    if request.prompt_token_ids and request.tools:
        raise ModelRequestError("tools need messages, not prompt token ids")
    _check_sampling(request, server, offered)


def _check_sampling(request: ModelRequest, server: Server, offered: Capabilities) -> None:
    sampling = request.sampling
    beyond = {
        "top_k": sampling.top_k is not None,
        "min_p": bool(sampling.min_p),
        "repetition_penalty": sampling.repetition_penalty not in (None, 1),
    }
    for name, asked in beyond.items():
        if asked and server.kind not in SELF_HOSTED:
            raise CapabilityError(
                f"{name} is not part of the OpenAI protocol",
                hint="leave it out, or put it into extra fields if you know the server takes it",
            )
    if sampling.reasoning_effort is not None and server.kind == "llamacpp":
        raise CapabilityError(
            "llama.cpp does not take reasoning_effort", hint="leave it out, or use its own options"
        )
    if sampling.shifts and server.diffuses:
        raise CapabilityError(
            f"a diffusion model inside vLLM does not take {sampling.shifts[0]}", hint="leave it out"
        )
    if request.sampling.stop_token_ids and not offered.stop_token_ids:
        raise CapabilityError(
            "this server is not known to stop at token ids",
            hint="stop at texts; vLLM and local models can stop at tokens",
        )
    if request.top_logprobs > offered.top_logprobs:
        raise CapabilityError(
            f"this server is known to report {offered.top_logprobs} top_logprobs, not"
            f" {request.top_logprobs}",
            hint="ask for fewer; vLLM reports up to 20, a local model more",
        )
    if request.placement or request.attention is not None:
        raise CapabilityError(
            "a server gives tokens neither positions of their own nor a common attention",
            hint="a local model does",
        )


def conversation(request: ModelRequest) -> Body:
    """The messages. An unfinished answer that is still empty is left out."""
    *before, last = request.messages
    if not request.continues:
        return {"messages": [_message(message) for message in request.messages]}
    if not last.content and before:
        return {"messages": [_message(message) for message in before]}
    return {
        "messages": [_message(message) for message in request.messages],
        "continue_final_message": True,
        "add_generation_prompt": False,
    }


def _sampling(request: ModelRequest, server: Server) -> Body:
    sampling = request.sampling
    longest = "max_completion_tokens" if server.kind == "openai" else "max_tokens"
    fields = {
        longest: sampling.most_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        # 0 keeps every token: news to llama.cpp, whose own default does not.
        "min_p": sampling.min_p if server.kind in SELF_HOSTED else None,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        _REPETITION.get(server.kind, "repetition_penalty"): sampling.repetition_penalty
        if server.kind in SELF_HOSTED
        else None,
        "logit_bias": dict(sampling.logit_bias) if sampling.logit_bias is not None else None,
        "reasoning_effort": sampling.reasoning_effort,
        "stop": list(sampling.stop) or None,
        "stop_token_ids": list(sampling.stop_token_ids) or None,
        "seed": sampling.seed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _extensions(request: ModelRequest, server: Server, offered: Capabilities) -> Body:
    body = _logprobs(request, server, offered)
    if offered.token_ids:
        body["return_token_ids"] = True
    if offered.priority and request.priority:
        # On the wire the smaller number goes first, as in vLLM.
        body["priority"] = -request.priority
    if request.cache_prefix and server.kind == "openai":
        body["prompt_cache_key"] = request.cache_prefix
    return body


def _logprobs(request: ModelRequest, server: Server, offered: Capabilities) -> Body:
    """Fields for log probabilities. vLLM's chat counts the sampled token among the largest."""
    most = request.top_logprobs
    if not (request.logprobs or most):
        return {}
    if request.prompt_token_ids:
        # Keyed by text, tokens with equal texts would collide.
        return {"logprobs": most or 1} | ({"return_tokens_as_token_ids": True} if most else {})
    if not most:
        return {"logprobs": True}
    more = server.kind == "vllm" and most < offered.top_logprobs
    return {"logprobs": True, "top_logprobs": most + more}


def _message(message: Message) -> Body:
    wire: Body = {"role": message.role, "content": message.content}
    if message.parts:
        wire["content"] = [_part(part) for part in message.parts]
    if message.tool_calls:
        wire["content"] = wire["content"] or None
        wire["tool_calls"] = wire_calls(message.tool_calls)
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _part(part: ContentPart) -> Body:
    """A part as the chat API spells it. A file's type is in its data URL, sound's in `format`."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data = b64encode(part.data).decode()
    url = f"data:{part.media_type};base64,{data}"
    match part:
        case Image():
            return {"type": "image_url", "image_url": {"url": url}}
        case Audio():
            form = _AUDIO_FORMATS.get(part.media_type, part.media_type.rpartition("/")[2])
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
        case File():
            return {"type": "file", "file": {"filename": part.name or "file", "file_data": url}}


_AUDIO_FORMATS: Final = {"audio/mpeg": "mp3"}


def _tool(tool: ToolSpec, server: Server) -> Body:
    function: Body = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    if _may_be_strict(tool.parameters, server):
        function["strict"] = True
    return {"type": "function", "function": function}


def _format(schema: JsonSchema, server: Server) -> Body:
    sent = closed(schema)
    strict = _may_be_strict(sent, server)
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": dict(sent), "strict": strict},
    }


def _may_be_strict(schema: JsonSchema, server: Server) -> bool:
    """Servers with grammars accept any schema, hosted ones follow OpenAI's rules."""
    return server.kind in SELF_HOSTED or is_strict(schema)


_LONGEST = 200


def with_node_name(body: dict[str, Any], request: ModelRequest, server: Server) -> dict[str, Any]:
    """The body with the name of the program's node, for servers that draft."""
    node = request.program.node if request.program is not None else ""
    given = body.get(FIELD, {})
    if not (server.drafts and node and isinstance(given, Mapping)):
        return body
    return {**body, FIELD: {NODE: node[:_LONGEST], **given}}
