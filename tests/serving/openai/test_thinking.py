"""The bound on a thought over HTTP: by token ids on vLLM, elsewhere by fields of the request."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import EndpointServer, Script, Tokenizer, chunk, usage
from weft.core.errors import CapabilityError
from weft.core.ports import Capabilities, Sampling
from weft.core.values import ToolSpec
from weft.serving.openai import OpenAIModel, Price

OPEN, CLOSE = 400, 401
TOKENS = Tokenizer({"<|im_start|>": 300, "<|im_end|>": 301, "<think>": OPEN, "</think>": CLOSE})
TOOL = ToolSpec("now", "", {"type": "object", "properties": {}})
OFF = {"chat_template_kwargs": {"enable_thinking": False}}


def spelt(token: int) -> str:
    return {OPEN: "<think>", CLOSE: "</think>"}.get(token) or chr(token)


def thinks(thought: str, answer: str) -> Any:
    """vLLM's `/completions` of a model that thinks unless its prompt has closed the thought."""

    def script(request: dict[str, Any]) -> Script:
        closed = CLOSE in request["prompt"]
        whole = ([] if closed else [OPEN, *map(ord, thought), CLOSE]) + [*map(ord, answer)]
        kept = whole[: request["max_tokens"]]
        parts = [
            {"choices": [{"index": 0, "text": spelt(token), "token_ids": [token]}]}
            for token in kept
        ]
        finish = "stop" if len(kept) == len(whole) else "length"
        end = {"choices": [{"index": 0, "text": "", "finish_reason": finish}]}
        return Script([*parts, end, usage(len(request["prompt"]), len(kept))], every_s=0.001)

    return script


@pytest.mark.parametrize(("bound", "requests"), [(0, 2), (2, 2), (40, 1)])
def test_vllm_by_token_ids(endpoints: EndpointServer, bound: int, requests: int) -> None:
    endpoint = endpoints.add(thinks("hmm hmm", "yes"), tokenizer=TOKENS)
    sampling = Sampling(max_tokens=20, thinking_tokens=bound)
    answer = ask(endpoint, question(sampling=sampling), price=Price(1.0, 1.0))
    assert (answer.text, answer.finish_reason) == ("yes", "stop")
    assert answer.reasoning == "hmm hmm"[: max(0, bound - 1)]
    assert 0 < answer.usage.reasoning_tokens <= max(1, bound)
    assert answer.usage.money > 0
    assert len(endpoint.requests) == requests
    assert {path for path in endpoint.paths if path.startswith("v1/")} == {
        "v1/models",
        "v1/completions",
    }
    assert not any("thinking" in name for sent in endpoint.requests for name in sent)


@pytest.mark.parametrize(
    ("bound", "fields"), [(0, OFF), (9, {"thinking_token_budget": 9})], ids=["off", "bound"]
)
def test_vllm_beside_tools_by_its_own_fields(
    endpoints: EndpointServer, bound: int, fields: dict[str, Any]
) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "yes"}, "stop"), usage(3, 1)]))
    sampling = Sampling(max_tokens=20, thinking_tokens=bound)
    extra = {"chat_template_kwargs": {"tone": "dry"}}
    assert ask(endpoint, question(sampling=sampling, tools=(TOOL,), extra=extra)).text == "yes"
    (sent,) = endpoint.requests
    assert sent["max_tokens"] == 20 + bound
    merged = {**extra["chat_template_kwargs"], **fields.get("chat_template_kwargs", {})}
    assert sent["chat_template_kwargs"] == merged
    assert sent.get("thinking_token_budget") == fields.get("thinking_token_budget")


@pytest.mark.parametrize(
    ("bound", "fields"), [(0, OFF), (9, {"thinking_token_budget": 9})], ids=["off", "bound"]
)
def test_vllm_behind_a_proxy_that_hides_its_tokenizer(
    endpoints: EndpointServer, bound: int, fields: dict[str, Any]
) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "yes"}, "stop"), usage(3, 1)]))
    sampling = Sampling(max_tokens=20, thinking_tokens=bound)
    assert ask(endpoint, question(sampling=sampling)).text == "yes"
    (sent,) = [sent for sent in endpoint.requests if "messages" in sent]
    assert {name: sent.get(name) for name in fields} == fields


def test_a_vllm_without_reasoning_config_says_how_to_start_it(endpoints: EndpointServer) -> None:
    why = "thinking_token_budget is set but reasoning_config is not configured."
    refused = Script(status=400, plain=json.dumps({"error": {"message": why}}))
    sampling = Sampling(max_tokens=20, thinking_tokens=9)
    with pytest.raises(CapabilityError, match="thinking_token_budget") as failed:
        ask(endpoints.add(refused), question(sampling=sampling, tools=(TOOL,)))
    assert "--reasoning-parser" in (failed.value.hint or "")


def test_other_servers_by_declared_fields(endpoints: EndpointServer) -> None:
    def capable(**settings: Any) -> Capabilities:
        async def main() -> Capabilities:
            async with aclosing(OpenAIModel(endpoint.base_url, "m", **settings)) as client:
                return await client.capabilities()

        return asyncio.run(main())

    details = {"completion_tokens_details": {"reasoning_tokens": 4}}
    counted = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 6, **details}}
    script = Script([chunk({"content": "yes"}, "stop"), counted])
    endpoint = endpoints.add(script, model={"owned_by": "openai"})
    assert not capable().thinking
    with pytest.raises(CapabilityError, match="switch a thought off"):
        ask(endpoint, question(sampling=Sampling(thinking_tokens=0)))
    assert not endpoint.requests

    declared = {"off": {"reasoning_effort": "none"}, "budget": "thinking_budget"}
    assert capable(thinking=declared).thinking
    off = question(sampling=Sampling(5, thinking_tokens=0))
    bound = question(sampling=Sampling(5, thinking_tokens=7))
    assert ask(endpoint, off, thinking=declared).usage.reasoning_tokens == 4
    ask(endpoint, bound, thinking=declared)
    assert [sent["max_completion_tokens"] for sent in endpoint.requests] == [5, 12]
    assert endpoint.requests[0]["reasoning_effort"] == "none"
    assert endpoint.requests[1]["thinking_budget"] == 7
    with pytest.raises(CapabilityError, match="bound a thought to 7 tokens"):
        ask(endpoint, bound, thinking={"off": {"reasoning_effort": "none"}})


@pytest.mark.parametrize("wrong", [{"on": {}}, {"off": 3}, {"budget": 3}])
def test_a_wrong_declaration_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="thinking"):
        OpenAIModel("http://127.0.0.1:1/v1", "m", thinking=wrong)
