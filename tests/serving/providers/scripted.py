"""Two hosted APIs on 127.0.0.1: the published forms of their pages, errors and streams.

Written from the APIs' public documentation. Nothing here was recorded from a vendor's server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.serving.openai.scripted import (
    PATIENCE_S,
    Endpoint,
    EndpointServer,
    Json,
    Script,
    words,
)
from weft.core.errors import ModelOverloaded, WeftError
from weft.serve import AnthropicModel, GeminiModel, ProviderOptions
from weft.serving.providers.model import ProviderModel
from weft.testing import Reply

KEY = "sk-a-key-that-nobody-may-see"
RECORDED = Path(__file__).parent / "recorded"


def _supported(**names: bool) -> Json:
    return {name: {"supported": supported} for name, supported in names.items()}


def anthropic_page(**able: Any) -> Script:
    """The description of the model `m`; `able` replaces some of its capabilities."""
    thinking = {"supported": True, "types": _supported(adaptive=True, enabled=True, disabled=True)}
    efforts = _supported(low=True, medium=True, high=True, xhigh=False, max=False)
    capabilities = {
        **_supported(batch=True, citations=True, code_execution=True),
        **_supported(image_input=True, pdf_input=True, structured_outputs=True),
        "effort": {"supported": True, **efforts},
        "thinking": thinking,
        **able,
    }
    page = {
        "type": "model",
        "id": "m",
        "display_name": "M",
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_tokens": 64000,
        "max_input_tokens": 200000,
        "capabilities": capabilities,
    }
    return Script(plain=json.dumps(page))


def gemini_page(**fields: Any) -> Script:
    """The description of the model `m`."""
    page = {
        "name": "models/m",
        "version": "001",
        "displayName": "M",
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
        **fields,
    }
    return Script(plain=json.dumps(page))


Plays = Callable[[Reply, Json], Script]


class HostedApi:
    """One of the two APIs: its pages, its client, and how it says a `weft.testing.Reply`."""

    def __init__(
        self, name: str, client: type[ProviderModel], page: Script, path: str, plays: Plays
    ) -> None:
        self.name = name
        self.client = client
        self.page = page
        self.path = path
        self.plays = plays

    def endpoint(
        self,
        endpoints: EndpointServer,
        script: Script | Callable[[Json], Script],
        page: Script | None = None,
    ) -> Endpoint:
        """A server of the model `m`."""
        return endpoints.add(script, pages={self.path: page or self.page})

    def connect(self, endpoint: Endpoint, **given: Any) -> ProviderModel:
        """A client of that server's model."""
        options = {"connect_timeout_s": PATIENCE_S, **given.pop("options", {})}
        given.setdefault("api_key", KEY)
        return self.client(
            "m", base_url=root(endpoint), options=ProviderOptions(**options), **given
        )


def root(endpoint: Endpoint) -> str:
    return endpoint.base_url.removesuffix("/v1")


def anthropic_start(prompt: int = 7, **usage: int) -> Json:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "output_tokens": 1, **usage},
    }
    return {"type": "message_start", "message": message}


def anthropic_block(index: int, block: Json, deltas: list[Json]) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def anthropic_end(reason: str, tokens: int, **delta: Any) -> list[Json]:
    ended = {"stop_reason": reason, "stop_sequence": None, **delta}
    return [
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]


def plays_anthropic(reply: Reply, request: Json) -> Script:
    """How the Messages API says `reply`: each word is a token."""
    if reply.error is not None:
        return anthropic_failure(reply.error)
    limit = request["max_tokens"]
    thoughts, said = _cut(reply, limit)
    blocks: list[list[Json]] = []
    if thoughts:
        deltas = [{"type": "thinking_delta", "thinking": word} for word in thoughts]
        deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        blocks.append(anthropic_block(len(blocks), empty, deltas))
    if said:
        deltas = [{"type": "text_delta", "text": word} for word in said]
        blocks.append(anthropic_block(len(blocks), {"type": "text", "text": ""}, deltas))
    for call in reply.tool_calls:
        use = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        pieces = [call.arguments[:3], call.arguments[3:]]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(anthropic_block(len(blocks), use, deltas))
    whole = len(words(reply.reasoning)) + len(words(reply.text))
    tokens = len(thoughts) + len(said)
    reason = "max_tokens" if tokens < whole else "tool_use" if reply.tool_calls else "end_turn"
    events = [anthropic_start(), {"type": "ping"}]
    events += [event for block in blocks for event in block]
    return Script(
        [*events, *anthropic_end(reason, tokens)],
        first_s=reply.first_token_s,
        every_s=reply.per_token_s,
        die_after=_after(reply.break_after_tokens, 3),
        named=True,
        done=False,
    )


def anthropic_failure(error: WeftError) -> Script:
    status, kind, headers = 500, "api_error", {}
    if isinstance(error, ModelOverloaded):
        status, kind = 429, "rate_limit_error"
        headers = {"retry-after": f"{error.retry_after_s:g}"}
    elif not error.retryable:
        status, kind = 400, "invalid_request_error"
    return anthropic_error(status, kind, error.message, headers)


def anthropic_error(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Script:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Script(status=status, headers=headers or {}, plain=json.dumps(body))


def gemini_chunk(parts: list[Json], finish: str | None = None, **fields: Any) -> Json:
    candidate: Json = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r-1", **fields}


def gemini_usage(prompt: int, shown: int, thoughts: int = 0, cached: int = 0) -> Json:
    usage = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": shown,
        "totalTokenCount": prompt + shown + thoughts,
    }
    usage |= {"thoughtsTokenCount": thoughts} if thoughts else {}
    return {"usageMetadata": usage | ({"cachedContentTokenCount": cached} if cached else {})}


def plays_gemini(reply: Reply, request: Json) -> Script:
    """How the Gemini API says `reply`: each word is a token."""
    if reply.error is not None:
        return gemini_failure(reply.error)
    thoughts, said = _cut(reply, request.get("generationConfig", {}).get("maxOutputTokens"))
    chunks = [gemini_chunk([{"text": word, "thought": True}]) for word in thoughts]
    chunks += [gemini_chunk([{"text": word}]) for word in said]
    calls = [
        {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
        for call in reply.tool_calls
    ]
    if calls:
        calls[0]["thoughtSignature"] = "c2lnbmVk"
    cut = len(thoughts) + len(said) < len(words(reply.reasoning)) + len(words(reply.text))
    usage = gemini_usage(7, len(said), len(thoughts))
    chunks.append(gemini_chunk(calls, "MAX_TOKENS" if cut else "STOP", **usage))
    return Script(
        chunks,
        first_s=reply.first_token_s,
        every_s=reply.per_token_s,
        die_after=reply.break_after_tokens,
        done=False,
    )


def gemini_failure(error: WeftError) -> Script:
    if isinstance(error, ModelOverloaded):
        info = {
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": f"{error.retry_after_s:g}s",
        }
        return gemini_error(429, "RESOURCE_EXHAUSTED", error.message, [info])
    if error.retryable:
        return gemini_error(500, "INTERNAL", error.message)
    return gemini_error(400, "INVALID_ARGUMENT", error.message)


def gemini_error(code: int, status: str, message: str, details: list[Json] | None = None) -> Script:
    error: Json = {"code": code, "message": message, "status": status}
    if details is not None:
        error["details"] = details
    return Script(status=code, plain=json.dumps({"error": error}))


def _cut(reply: Reply, limit: int | None) -> tuple[list[str], list[str]]:
    thoughts = words(reply.reasoning)[:limit]
    left = None if limit is None else limit - len(thoughts)
    return thoughts, words(reply.text)[:left]


def _after(tokens: int | None, before: int) -> int | None:
    return None if tokens is None else before + tokens


ANTHROPIC = HostedApi("anthropic", AnthropicModel, anthropic_page(), "v1/models/m", plays_anthropic)
GEMINI = HostedApi("gemini", GeminiModel, gemini_page(), "v1beta/models/m", plays_gemini)
APIS = {api.name: api for api in (ANTHROPIC, GEMINI)}
OLDER = {"api_version": "2023-06-01"}
"""Options of Claude models that take a temperature."""
