"""Streams of hosted APIs: cancellation, bounds, proxies without pages, and bytes that are wrong."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import Any

import pytest

from tests.serving.openai.scripted import EndpointServer, Script
from tests.serving.providers.scripted import APIS, HostedApi, root
from weft.core.errors import ModelNotFound, ModelOutputError, ModelUnavailable
from weft.core.ports import ReasoningDelta
from weft.serve import Completion, Message, ModelRequest, Sampling, complete
from weft.serving.openai import Price
from weft.testing import Reply

ASKED = ModelRequest((Message("user", "Hello"),), sampling=Sampling(max_tokens=64))
NO_PAGE = Script(status=404, plain='{"error": {"code": 404, "message": "no such page"}}')


@pytest.fixture(params=list(APIS))
def api(request: pytest.FixtureRequest) -> HostedApi:
    return APIS[request.param]


def answer(
    api: HostedApi,
    endpoints: EndpointServer,
    script: Script,
    page: Script | None = None,
    **options: Any,
) -> Completion:
    endpoint = api.endpoint(endpoints, script, page)

    async def main() -> Completion:
        async with aclosing(api.connect(endpoint, options=options)) as client:
            return await complete(client, ASKED)

    return asyncio.run(main())


def test_closing_inside_a_thought_closes_the_connection(
    api: HostedApi, endpoints: EndpointServer
) -> None:
    stalled = api.plays(Reply("Four.", reasoning="Two and two make"), {"max_tokens": 64})
    middle = Script(stalled.chunks, stall_after=5, named=stalled.named, done=False)
    endpoint = api.endpoint(endpoints, middle)

    async def main() -> None:
        async with aclosing(api.connect(endpoint)) as client:
            stream = client.generate(ASKED)
            assert isinstance(await anext(stream), ReasoningDelta)
            assert endpoint.open == 1
            await stream.aclose()
            await endpoint.settled(broken_off=1)
            assert not getattr(client, "_connections")._open  # noqa: B009

    asyncio.run(main())


def test_an_event_without_end_is_not_kept(api: HostedApi, endpoints: EndpointServer) -> None:
    endless = Script(
        headers={"content-type": "text/event-stream"}, plain="data: " + "x" * 2**20, repeat=True
    )
    with pytest.raises(ModelOutputError, match="one event of more than") as raised:
        answer(api, endpoints, endless)
    assert not raised.value.retryable


def test_an_answer_without_end_is_not_kept(api: HostedApi, endpoints: EndpointServer) -> None:
    said = api.plays(Reply("one two three"), {"max_tokens": 64})
    at = 4 if said.named else 1
    endless = Script(said.chunks[: at + 1], repeat=True, named=said.named)
    with pytest.raises(ModelOutputError, match="larger than 1,000 characters"):
        answer(api, endpoints, endless, max_answer_chars=1000)


def test_a_proxy_without_pages_of_models_serves(api: HostedApi, endpoints: EndpointServer) -> None:
    said = api.plays(Reply("Hi."), {"max_tokens": 64})
    assert answer(api, endpoints, said, NO_PAGE).text == "Hi."
    with pytest.raises(ModelNotFound, match="no such page"):
        answer(api, endpoints, NO_PAGE, NO_PAGE)


@pytest.mark.parametrize(
    "page", ["<html>a page</html>", "[]", "7", '{"capabilities": 7}', '{"capabilities": {}}', ""]
)
def test_a_page_that_is_none_is_unavailable_or_says_nothing(
    api: HostedApi, page: str, endpoints: EndpointServer
) -> None:
    said = api.plays(Reply("Hi."), {"max_tokens": 64})
    with suppress(ModelUnavailable):
        assert answer(api, endpoints, said, Script(plain=page)).text == "Hi."


def test_an_api_that_is_down_is_asked_again_the_next_time(
    api: HostedApi, endpoints: EndpointServer
) -> None:
    endpoint = api.endpoint(endpoints, lambda body: api.plays(Reply("Hi."), body))
    pages = dict(endpoint.pages)
    endpoint.pages = dict.fromkeys(pages, Script(status=500, plain="{}"))

    async def main() -> None:
        async with aclosing(api.connect(endpoint)) as client:
            with pytest.raises(ModelUnavailable):
                await client.capabilities()
            endpoint.pages = pages
            assert (await client.capabilities()).tools
            assert (await complete(client, ASKED)).text == "Hi."

    asyncio.run(main())


def test_a_silent_server_is_unavailable(api: HostedApi, endpoints: EndpointServer) -> None:
    said = api.plays(Reply("Hi."), {"max_tokens": 64})
    silent = Script(said.chunks, stall_after=1, named=said.named)
    with pytest.raises(ModelUnavailable, match=r"was silent for 0\.2 s"):
        answer(api, endpoints, silent, idle_timeout_s=0.2)


def test_no_server_is_unavailable(api: HostedApi, endpoints: EndpointServer) -> None:
    client = api.client("m", base_url="http://127.0.0.1:9", api_key="no key at all")

    async def main() -> None:
        async with aclosing(client):
            await complete(client, ASKED)

    with pytest.raises(ModelUnavailable, match=r"cannot connect to http://127\.0\.0\.1:9"):
        asyncio.run(main())


@pytest.mark.parametrize(
    "body",
    [
        "",
        "data: {\n\n",
        "data: 7\n\n",
        "event: message_start\ndata: []\n\n",
        'event: message_start\ndata: {"type": "message_start"}\n\n',
        'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 4}\n\n',
        'data: {"candidates": 7}\n\n',
        'data: {"candidates": [{"content": {"parts": [7]}}]}\n\n',
        "<html>a page</html>",
    ],
)
def test_what_is_no_answer_is_unavailable(
    api: HostedApi, body: str, endpoints: EndpointServer
) -> None:
    wrong = Script(headers={"content-type": "text/event-stream"}, plain=body)
    with pytest.raises(ModelUnavailable):
        answer(api, endpoints, wrong)


def test_money_is_counted_with_cached_tokens(api: HostedApi, endpoints: EndpointServer) -> None:
    said = api.plays(Reply("one two"), {"max_tokens": 64})
    price = Price(prompt=3.0, completion=15.0, cached=0.3)
    usage = answer(api, endpoints, said, price=price).usage
    assert usage.money == pytest.approx((7 * 3 + 2 * 15) / 1e6)


def test_a_trace_and_own_headers_are_sent(api: HostedApi, endpoints: EndpointServer) -> None:
    endpoint = api.endpoint(endpoints, lambda body: api.plays(Reply("Hi."), body))

    async def main() -> None:
        client = api.client(
            "m", base_url=root(endpoint), api_key="k" * 9, headers={"x-team": "blue"}
        )
        async with aclosing(client):
            await complete(client, ASKED)

    asyncio.run(main())
    assert [headers["x-team"] for headers in endpoint.headers] == ["blue", "blue"]
    assert len(endpoint.headers[1]["x-request-id"]) == 32
    assert json.dumps(endpoint.requests)
