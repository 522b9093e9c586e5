from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import Endpoint, EndpointServer, Script, says
from weft.core.call_context import set_trace_headers
from weft.core.errors import ModelRequestError, ModelUnavailable
from weft.core.ports import Capabilities, complete
from weft.serving.openai import OpenAIModel

METRICS = (
    "# TYPE vllm:cache_config_info gauge\n"
    'vllm:cache_config_info{block_size="16",enable_prefix_caching="%s",engine="0"} 1.0\n'
)


def found(endpoint: Endpoint, **settings: Any) -> Capabilities:
    """What is found, but for the fields that a request may have beside those of weft."""

    async def main() -> Capabilities:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", **settings)) as client:
            return replace(await client.capabilities(), extra_fields=())

    return asyncio.run(main())


def test_requests_name_the_trace_that_they_are_part_of(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"))
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            await complete(client, question())
            set_trace_headers({"traceparent": parent})
            await complete(client, question())

    asyncio.run(main())
    named = [headers.get("traceparent") for headers in endpoint.headers]
    assert named[0] is None
    assert named[-1] == parent


def test_vllm_is_known_by_its_owner(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(
        says("x"),
        model={"owned_by": "vllm", "max_model_len": 8192},
        version=Script(plain='{"version": "0.32.0+cpu"}'),
        metrics=Script(plain=METRICS % "True"),
    )
    assert found(endpoint, priority=True) == Capabilities(
        structured_output=True,
        tools=True,
        logprobs=True,
        token_ids=True,
        prompt_token_ids=True,
        priority=True,
        prefix_reuse=True,
        prompt_logprobs=True,
        grammar=True,
        continuation=True,
        stop_token_ids=True,
        top_logprobs=20,
        max_context_tokens=8192,
        media=("image", "audio"),
        thinking=True,
    )
    assert endpoint.paths == ["v1/models", "version", "metrics"]


@pytest.mark.parametrize("version", ["0.11.2", "0.9", "dev", "v0.2.0"])
def test_grammars_are_not_expected_of_a_vllm_that_may_ignore_them(
    endpoints: EndpointServer, version: str
) -> None:
    page = Script(plain=json.dumps({"version": version}))
    offered = found(endpoints.add(says("x"), version=page))
    assert offered.continuation
    assert not offered.grammar


def test_a_prefix_cache_that_is_off_is_not_claimed(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), metrics=Script(plain=METRICS % "False"))
    assert not found(endpoint).prefix_reuse


@pytest.mark.parametrize(
    "metrics", [Script(status=500, plain="no"), Script(plain="x" * 99_999, repeat=True)]
)
def test_metrics_that_cannot_be_had_claim_nothing(
    endpoints: EndpointServer, metrics: Script
) -> None:
    endpoint = endpoints.add(says("x"), metrics=metrics)
    assert found(endpoint).token_ids
    assert not found(endpoint).prefix_reuse


def test_vllm_behind_another_name_is_known_by_its_version(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(
        says("x"), model={"owned_by": "acme"}, version=Script(plain='{"version": "0.32.0"}')
    )
    assert found(endpoint).token_ids
    assert endpoint.paths == ["v1/models", "version", "metrics"]


@pytest.mark.parametrize("version", ['{"version": "1", "llama": true}', "<html>", '{"version":1}'])
def test_another_version_page_proves_nothing(endpoints: EndpointServer, version: str) -> None:
    endpoint = endpoints.add(says("x"), model={}, version=Script(plain=version))
    assert found(endpoint) == Capabilities(
        structured_output=True, tools=True, media=("image", "audio", "file")
    )


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        ({"owned_by": "sglang", "max_model_len": 100}, 100),
        ({"owned_by": "llamacpp", "meta": {"n_ctx": 200}}, 200),
        ({"owned_by": "acme", "context_length": 300}, 300),
        ({"owned_by": "acme", "context_window": 400}, 400),
        ({"owned_by": "openai"}, None),
    ],
)
def test_the_longest_context_as_servers_spell_it(
    endpoints: EndpointServer, model: dict[str, Any], longest: int | None
) -> None:
    assert found(endpoints.add(says("x"), model=model)).max_context_tokens == longest


@pytest.mark.parametrize("listing", ["[]", '{"data": 3}', '{"data": [{"id": []}]}', "no"])
def test_a_listing_that_makes_no_sense_is_an_unknown_server(
    endpoints: EndpointServer, listing: str
) -> None:
    endpoint = endpoints.add(says("x"), models=Script(plain=listing))
    assert found(endpoint) == Capabilities(
        structured_output=True, tools=True, media=("image", "audio", "file")
    )


def test_a_server_without_a_listing_still_answers(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), models=Script(status=404, plain=""))
    assert ask(endpoint).text == "x"


def test_an_alias_of_the_only_model_is_that_model(endpoints: EndpointServer) -> None:
    listing = json.dumps({"data": [{"id": "real name", "owned_by": "vllm"}]})
    endpoint = endpoints.add(says("x"), models=Script(plain=listing))
    assert found(endpoint).token_ids


def test_a_wrong_key_shows_at_once(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), models=Script(status=401, plain="no"))
    with pytest.raises(ModelRequestError, match="401"):
        found(endpoint)


def test_discovery_happens_once_for_many_callers_and_again_after_a_failure(
    endpoints: EndpointServer,
) -> None:
    endpoint = endpoints.add(says("x"), models=Script(status=500, plain="starting"))
    good = endpoints.add(says("x")).models

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            with pytest.raises(ModelUnavailable, match="starting"):
                await client.capabilities()
            endpoint.models = good
            async with asyncio.TaskGroup() as group:
                for _ in range(10):
                    group.create_task(complete(client, question()))

    asyncio.run(main())
    assert endpoint.paths.count("v1/models") == 2
