"""Keys: where they come from, where they go, and where they never appear."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

import pytest

from tests.serving.openai.scripted import Endpoint, EndpointServer, Script
from tests.serving.providers.scripted import APIS, GEMINI, KEY, HostedApi, root
from weft.core.errors import ModelError, ModelRequestError
from weft.serve import Message, ModelRequest, complete
from weft.serving.providers.model import ProviderModel
from weft.testing import Reply

ASKED = ModelRequest((Message("user", "Hello"),))
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(params=list(APIS))
def api(request: pytest.FixtureRequest) -> HostedApi:
    return APIS[request.param]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def ask(client: ProviderModel) -> None:
    async def main() -> None:
        async with aclosing(client):
            await complete(client, ASKED)

    asyncio.run(main())


def playing(api: HostedApi, endpoints: EndpointServer) -> Endpoint:
    return api.endpoint(endpoints, lambda body: api.plays(Reply("Hi."), body))


def test_the_key_of_the_named_variable_is_sent_with_every_request(
    api: HostedApi, endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    endpoint = playing(api, endpoints)
    ask(api.connect(endpoint, api_key=None, api_key_env="MY_KEY"))
    assert len(endpoint.headers) == 2
    for headers in endpoint.headers:
        assert KEY in " ".join(headers.values())


def test_the_usual_key_goes_to_the_usual_address_only(
    api: HostedApi, endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    endpoint = playing(api, endpoints)
    ask(api.connect(endpoint, api_key=None))
    for headers in endpoint.headers:
        assert KEY not in " ".join(headers.values())
        assert not headers.keys() & {"authorization", "x-api-key", "x-goog-api-key"}
    assert api.client("m")._endpoint.api_key == KEY


def test_without_its_key_nothing_is_sent(api: HostedApi, endpoints: EndpointServer) -> None:
    with pytest.raises(ModelRequestError, match=f"{api.client.key_variable} is not set"):
        ask(api.client("m"))
    endpoint = playing(api, endpoints)
    with pytest.raises(ModelRequestError, match="MY_OTHER_KEY is not set"):
        ask(api.connect(endpoint, api_key=None, api_key_env="MY_OTHER_KEY"))
    assert not endpoint.headers


def test_an_address_in_the_environment_is_not_followed(
    api: HostedApi, endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    astray = endpoints.add(Script(status=500, plain=""))
    for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.setenv(name, root(astray))
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    endpoint = playing(api, endpoints)
    ask(api.connect(endpoint))
    assert len(endpoint.requests) == 1
    assert not astray.headers
    assert str(getattr(api.client("m", api_key=KEY), "_endpoint").base_url) == api.client.address  # noqa: B009


def test_the_machine_is_not_described(api: HostedApi, endpoints: EndpointServer) -> None:
    endpoint = playing(api, endpoints)
    ask(api.connect(endpoint))
    for headers in endpoint.headers:
        assert not [name for name in headers if name.startswith("x-stainless")]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_server_that_echoes_the_key_does_not_spread_it(
    api: HostedApi, status: int, endpoints: EndpointServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    echo = f'{{"error": {{"code": {status}, "message": "bad key {KEY}", "status": "{KEY}"}}}}'
    endpoint = api.endpoint(endpoints, Script(status=status, plain=echo))
    client = api.connect(endpoint)
    with pytest.raises(ModelError) as raised:
        ask(client)
    assert len(endpoint.requests) == 1  # the library repeats nothing
    error = raised.value
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert KEY not in f"{error} {error!r} {error.hint} {client!r} {caplog.text}"


def test_a_redirect_is_not_followed(api: HostedApi, endpoints: EndpointServer) -> None:
    astray = endpoints.add(Script(plain="{}"))
    moved = Script(status=302, headers={"location": root(astray)}, plain="")
    endpoint = api.endpoint(endpoints, moved)
    with pytest.raises(ModelRequestError, match="redirects are not followed"):
        ask(api.connect(endpoint))
    assert not astray.headers


def test_the_library_of_gemini_has_no_other_way_to_the_network() -> None:
    client = GEMINI.client("m", api_key=KEY)
    inner = getattr(client, "_client")._api_client  # noqa: B009
    assert inner._async_httpx_client is getattr(client, "_connections").http  # noqa: B009
    assert not inner._use_aiohttp()
