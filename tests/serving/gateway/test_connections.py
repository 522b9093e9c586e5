"""Clients that dawdle, flood or speak another language, on bare sockets."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from tests import manual_clock
from tests.serving.gateway.gateway_server import HELLO, KEY, House, says, until, with_house
from weft.serving.gateway import GatewayKeys
from weft.testing import FakeModel, Reply

HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
)


def request(**fields: object) -> bytes:
    body = json.dumps({"model": "fake", "messages": HELLO, **fields}).encode()
    return HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is closed."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_headers_that_do_not_come_end_the_connection() -> None:
    async def body(house: House) -> None:
        for sent in (b"", b"GET /healthz HT", HEAD):
            reader, _ = await house.raw(sent)
            assert await rest(reader) == b""

    with_house(body, says(), header_timeout_s=0.05)


def test_nor_may_the_second_request_of_a_connection_dawdle() -> None:
    async def body(house: House) -> None:
        reader, writer = await house.raw(request())
        assert b"200" in await reader.readline()
        await reader.readuntil(b'"usage"')
        writer.write(b"GET /heal")
        ending = asyncio.create_task(rest(reader))
        while not ending.done():
            manual_clock.pass_time(10)
            await asyncio.sleep(0.01)
        assert b"HTTP" not in ending.result()

    with_house(body, says(), header_timeout_s=20.0)


def test_a_body_that_does_not_come_is_a_408_and_the_end() -> None:
    async def body(house: House) -> None:
        reader, _ = await house.raw(HEAD + b"Content-Length: 100\r\n\r\n{")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"connection: close" in answer

    with_house(body, says(), body_timeout_s=0.05)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_flood_is_a_413_and_the_end(chunked: bool) -> None:
    async def body(house: House) -> None:
        if chunked:
            piece = b"1000\r\n" + b"x" * 4096 + b"\r\n"
            data = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 3
        else:
            data = HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 4096
        reader, _ = await house.raw(data)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer

    with_house(body, says(), max_body_bytes=1000)


async def sends_for_ever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"1\r\nx\r\n")
        await writer.drain()
        manual_clock.pass_time(1)
        await asyncio.sleep(0.005)


def test_a_refused_client_that_goes_on_sending_is_given_up() -> None:
    async def body(house: House) -> None:
        reader, writer = await house.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        assert b" 401 " in await reader.readline()
        with pytest.raises(ConnectionError):
            await sends_for_ever(writer)

    with_house(body, says(), header_timeout_s=20.0, keys=GatewayKeys([KEY]))


def test_a_refused_client_hears_so_after_a_large_body() -> None:
    async def body(house: House) -> None:
        large = [{"role": "user", "content": "x" * 6_000_000}]
        assert (await house.chat(messages=large)).status_code == 401

    with_house(body, says(), keys=GatewayKeys([KEY]))


def test_a_client_that_reads_nothing_is_given_up() -> None:
    model = FakeModel([Reply("word " * 200_000)])

    async def body(house: House) -> None:
        reader, _ = await house.raw(request(stream=True))
        await until(lambda: model.running == 1)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: model.cancelled == 1)
        await until(lambda: len(house.exchanges) == 1)
        assert house.exchanges[0].gone

    with_house(body, model, write_timeout_s=0.2)


def test_what_is_not_http_is_a_400() -> None:
    get = b"GET /healthz HTTP/1.1\r\n"
    tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    long = get + b"Host: localhost\r\nX: " + b"x" * 700_000 + b"\r\n\r\n"

    async def body(house: House) -> None:
        for sent in (tls, b"hello\r\n\r\n", get + b"\r\n", long):
            with suppress(ConnectionError):  # it need not read all of it
                reader, _ = await house.raw(sent)
                assert b" 400 " in await reader.readline()

    with_house(body, says())


def test_a_pipelined_request_waits_for_its_turn() -> None:
    async def body(house: House) -> None:
        reader, writer = await house.raw(request() + request())
        for _ in range(2):
            await reader.readuntil(b'"content":"Hello there, friend"')
        writer.close()

    with_house(body, says())


def test_an_upgrade_is_not_taken() -> None:
    async def body(house: House) -> None:
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
        reader, _ = await house.raw(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + upgrade)
        assert b" 200 " in await reader.readline()

    with_house(body, says())
