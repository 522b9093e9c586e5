"""No address that is not public is reached, whatever leads there, and no key leaves its server."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import ssl
from collections.abc import Sequence
from typing import Any

import pytest

from tests.agents.openapi.api_server import LOCAL, Hasty, Shop, document, raw
from weft.agents.openapi import OpenApiOptions, OpenApiTools
from weft.agents.openapi.address import AddressPolicy, ServerOrigin, is_public, origin_of
from weft.agents.openapi.client import HttpPool, HttpRequest, RequestSender
from weft.core.errors import BuildError, ToolRaised, WeftError

PRIVATE = [
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"),
    *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "fec0::1"),
    *("::7f00:1", "::ffff:0:7f00:1", "4000::1", "::ffff:10.0.0.1", "64:ff9b:1::7f00:1"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    assert not AddressPolicy(ServerOrigin("https", "api.example.com", 443)).allows(address, "x", 1)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_an_address_with_a_zone_is_a_links() -> None:
    assert not AddressPolicy(ServerOrigin("https", "h", 443)).allows("fe80::1%eth0", "h", 443)


def test_private_networks_are_allowed_at_home_only() -> None:
    reach = AddressPolicy(ServerOrigin("http", "home", 80), (ipaddress.ip_network("10.0.0.0/8"),))
    assert reach.allows("10.1.2.3", "home", 80)
    assert not reach.allows("10.1.2.3", "home", 8080)
    assert not reach.allows("10.1.2.3", "elsewhere", 80)
    assert not reach.allows("192.168.0.1", "home", 80)


def ask(options: OpenApiOptions, name: str, resolver: Any = None, **arguments: Any) -> WeftError:
    async def main() -> WeftError:
        async with OpenApiTools(
            document(), ["page", "go", "goByPost"], options, clock=Hasty(), resolver=resolver
        ) as tools:
            with pytest.raises(WeftError) as raised:
                await tools.call(name, arguments)
            return raised.value

    return asyncio.run(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433"])
def test_this_machine_is_not_reached_unless_allowed(shop: Shop, host: str) -> None:
    error = ask(OpenApiOptions(f"http://{host}:{shop.port}/v1"), "page")
    assert "not public" in str(error)
    assert "private" in str(error)
    assert not error.retryable
    assert not shop.requests


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://localhost:1/x",
        "http://[::1]:1/",
        "//169.254.169.254/x",
        "http://[::ffff:169.254.169.254]/x",
        "http://2852039166/",  # 169.254.169.254 as one number
    ],
)
def test_a_redirect_to_a_private_address_is_not_followed(shop: Shop, target: str) -> None:
    error = ask(OpenApiOptions(shop.url, private=LOCAL), "go", to=target)
    assert isinstance(error, ToolRaised)
    assert "not public" in str(error)
    assert len(shop.requests) == 1


def test_not_even_to_another_port_of_the_same_host(shop: Shop) -> None:
    async def main() -> tuple[WeftError, int]:
        async with raw(b"HTTP/1.1 200 OK\r\n\r\n") as other:
            options = OpenApiOptions(shop.url, private=LOCAL)
            async with OpenApiTools(document(), ["go"], options) as tools:
                with pytest.raises(ToolRaised, match="not public") as raised:
                    await tools.call("go", {"to": other["url"]})
                return raised.value, other["requests"]

    assert asyncio.run(main())[1] == 0


def test_a_redirect_on_the_same_server_is_followed(shop: Shop) -> None:
    async def main() -> Any:
        options = OpenApiOptions(shop.url, private=LOCAL)
        doc = document(_go={**document()["paths"]["/go"]})
        doc["paths"]["/go"]["get"]["responses"] = {}
        async with OpenApiTools(doc, ["go"], options) as tools:
            return await tools.call("go", {"to": "page?x=1#here"})

    assert asyncio.run(main()) == "here"
    assert [request["query"] for request in shop.requests] == ["to=page%3Fx%3D1%23here", "x=1"]


def test_redirects_in_a_circle_end(shop: Shop) -> None:
    error = ask(OpenApiOptions(shop.url, private=LOCAL), "go", to="http://")  # the same again
    assert "redirects more than 3 times" in str(error)
    assert len(shop.requests) == 4


@pytest.mark.parametrize(
    "target", ["ftp://x/", "file:///etc/passwd", "http://a:b@c/", "http://[", "http://:80/"]
)
def test_a_redirect_to_no_address_is_told(shop: Shop, target: str) -> None:
    error = ask(OpenApiOptions(shop.url, private=LOCAL), "go", to=target)
    assert "no address" in str(error)


def test_a_post_is_not_led_elsewhere(shop: Shop) -> None:
    error = ask(OpenApiOptions(shop.url, private=LOCAL), "goByPost")
    assert "redirects a POST" in str(error)
    assert len(shop.requests) == 1


def test_a_name_cannot_change_its_address_between_check_and_connection(shop: Shop) -> None:
    """The name is resolved once; what was checked is what is connected to."""
    asked: list[str] = []

    async def resolver(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) > 1 else ["127.0.0.1"]

    url = f"http://shop.example:{shop.port}/v1"
    assert "not public" in str(ask(OpenApiOptions(url), "page", resolver))
    assert asked == ["shop.example"]
    assert not shop.requests


def test_a_name_with_one_private_address_is_reached_at_the_others_only(shop: Shop) -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.1", "127.0.0.1"]

    async def main() -> Any:
        url = f"http://shop.example:{shop.port}/v1"
        doc = document(_page={"get": {"operationId": "page", "responses": {}}})
        options = OpenApiOptions(url, private=LOCAL)
        async with OpenApiTools(doc, ["page"], options, resolver=resolver) as tools:
            return await tools.call("page", {})

    assert asyncio.run(main()) == "here"
    assert shop.requests[0]["headers"]["host"] == f"shop.example:{shop.port}"


def test_an_unknown_name_is_told() -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        raise OSError("nodename nor servname provided")

    error = ask(OpenApiOptions("http://nowhere.example/v1"), "page", resolver)
    assert "nowhere.example is not known" in str(error)


class Recording(HttpPool):
    """Answers without a network: a redirect, then a page."""

    def __init__(self, location: str) -> None:
        self.sent: list[HttpRequest] = []
        self._location = location

    async def send(self, request: HttpRequest, max_bytes: int) -> Any:
        from weft.agents.openapi.client import HttpAnswer

        self.sent.append(request)
        first = len(self.sent) == 1
        return HttpAnswer(302 if first else 200, {"location": self._location} if first else {}, b"")


SECRET = {"Authorization": "Bearer k", "X-Key": "k", "Cookie": "sid=k", "Accept": "a/b"}


@pytest.mark.parametrize(
    ("location", "kept"),
    [
        ("https://api.example.com/other", set(SECRET)),
        ("/other", set(SECRET)),
        ("https://api.example.com:8443/other", {"Accept"}),
        ("https://evil.example/other", {"Accept"}),
        ("https://api.example.com.evil.example/", {"Accept"}),
    ],
)
def test_a_key_does_not_leave_its_server(location: str, kept: set[str]) -> None:
    connections = Recording(location)
    origin, _ = origin_of("https://api.example.com")
    request = HttpRequest("GET", origin, "/a?key=k", SECRET)
    exchange = RequestSender(connections, OpenApiOptions(), Hasty())
    asyncio.run(exchange.answer(request))
    assert set(connections.sent[1].headers) == kept
    assert "key=k" not in connections.sent[1].target


def test_encryption_is_not_given_up() -> None:
    connections = Recording("http://api.example.com/")
    origin, _ = origin_of("https://api.example.com")
    exchange = RequestSender(connections, OpenApiOptions(), Hasty())
    with pytest.raises(ToolRaised, match="not encrypted"):
        asyncio.run(exchange.answer(HttpRequest("GET", origin, "/", SECRET)))


def test_a_certificate_of_nobody_is_refused(tmp_path: Any) -> None:
    """A server that speaks TLS with a certificate of its own making."""
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    from tests.agents.openapi.certificate import self_signed

    async def main() -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self_signed(tmp_path))
        asked: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(10))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        options = OpenApiOptions(url, private=LOCAL, retries=0)
        async with server, OpenApiTools(document(), ["page"], options) as tools:
            with pytest.raises(ToolRaised) as raised:
                await tools.call("page", {})
        assert not asked
        return str(raised.value)

    assert "certificate" in asyncio.run(main()).lower()


def test_proxies_of_the_environment_are_not_used(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{shop.port}")
    error = ask(OpenApiOptions("http://10.255.255.1/v1"), "page")
    assert "not public" in str(error)
    assert not shop.requests


def test_no_key_is_logged(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    doc = document()
    doc["components"]["securitySchemes"] = {"k": {"type": "apiKey", "in": "query", "name": "key"}}
    doc["security"] = [{"k": []}]
    options = OpenApiOptions(shop.url, auth_env="SHOP_KEY", private=LOCAL)

    async def main() -> None:
        async with OpenApiTools(doc, ["getItem"], options) as tools:
            await tools.call("getItem", {"id": 1})

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert shop.requests[0]["query"] == "key=s3cret-value"
    assert "s3cret" not in caplog.text


def test_a_key_is_not_sent_in_clear_over_a_network() -> None:
    with pytest.raises(BuildError, match="in clear"):
        OpenApiTools(document(), ["page"], OpenApiOptions("http://api.example.com", auth_env="KEY"))


def test_a_document_alone_does_not_say_who_gets_the_key() -> None:
    with pytest.raises(BuildError, match="base_url"):
        OpenApiOptions(auth_env="KEY")


def test_the_errors_of_a_json_document_name_no_content() -> None:
    doc = json.dumps(document()).encode()
    assert len(OpenApiTools(doc, ["page"], OpenApiOptions("https://x.example")).specs()) == 1
