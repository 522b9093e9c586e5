"""Calls against a real server: arguments in their places, answers checked, failures told."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.agents.openapi.api_server import LOCAL, Hasty, Shop, document, raw
from weft.agents.openapi import OpenApiOptions, OpenApiTools
from weft.core.errors import (
    BuildError,
    ToolArgumentError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
    WeftError,
)

ALL = ["getItem", "deleteItem", "add-item", "echo", "go", "goByPost", "page"]


def ask(url: str, name: str, arguments: dict[str, Any], doc: Any = None, **options: Any) -> Any:
    clock = options.pop("clock", Hasty())
    listed = options.pop("operations", ALL)
    settings = OpenApiOptions(**{"base_url": url, "private": LOCAL, **options})

    async def main() -> Any:
        async with OpenApiTools(doc or document(), listed, settings, clock=clock) as tools:
            return await tools.call(name, arguments)

    return asyncio.run(main())


def failure(url: str, name: str, arguments: dict[str, Any], **options: Any) -> WeftError:
    with pytest.raises(WeftError) as raised:
        ask(url, name, arguments, **options)
    return raised.value


def test_a_value_comes_back_as_plain_data(shop: Shop) -> None:
    found = ask(shop.url, "getItem", {"id": 3})
    assert found == {"id": 3, "name": "tea", "parts": [{"id": 1, "name": "leaf"}]}
    assert shop.requests[0]["path"] == "/v1/items/3"
    assert shop.requests[0]["headers"]["host"] == f"127.0.0.1:{shop.port}"


def test_a_body_is_sent_as_json_and_an_empty_answer_is_none(shop: Shop) -> None:
    assert ask(shop.url, "add_item", {"body": {"name": "jam"}}) == {"id": 7, "name": "jam"}
    assert shop.requests[0]["body"] == '{"name":"jam"}'
    assert shop.requests[0]["headers"]["content-type"] == "application/json"
    assert ask(shop.url, "deleteItem", {"id": 1}) is None


def test_every_parameter_stays_in_its_place(shop: Shop) -> None:
    evil = "a/b?c=d&e#f%2e ü{x}"
    arguments = {
        "name_path": evil,
        "name_query": evil,
        "X_Tag": "tag: one",
        "crumb": "a; b=c",
        "ids": [1, "two & three"],
        "filter": {"k[&]": "v=1", "n": True},
    }
    told = ask(shop.url, "echo", arguments)
    coded = "a%2Fb%3Fc%3Dd%26e%23f%252e%20%C3%BC%7Bx%7D"
    assert told["path"] == f"/v1/echo/{coded}"
    assert told["query"] == (
        f"name={coded}&ids=1&ids=two%20%26%20three&filter%5Bk%5B%26%5D%5D=v%3D1&filter%5Bn%5D=true"
    )
    assert told["headers"]["x-tag"] == "tag: one"
    assert told["headers"]["cookie"] == "crumb=a%3B%20b%3Dc"


def test_none_leaves_an_argument_out(shop: Shop) -> None:
    told = ask(shop.url, "echo", {"name_path": "x", "name_query": None, "X_Tag": None})
    assert told["query"] == ""
    assert "x-tag" not in told["headers"]


@pytest.mark.parametrize("step", ["..", "."])
def test_a_path_cannot_be_climbed(shop: Shop, step: str) -> None:
    error = failure(shop.url, "echo", {"name_path": step})
    assert isinstance(error, ToolArgumentError)
    assert not shop.requests


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("getItem", {}, "id"),
        ("getItem", {"id": "3"}, "id"),
        ("getItem", {"id": 3, "extra": 1}, "extra"),
        ("add_item", {"body": {"name": "x" * 50}}, "name"),
        ("add_item", {"body": {"id": 3}}, "name"),
        ("add_item", {}, "body"),
        ("echo", {"name_path": ""}, "empty"),
        ("echo", {"name_path": "x", "X_Tag": "a\r\nHost: b"}, "X_Tag"),
        ("echo", {"name_path": "x", "X_Tag": "ü"}, "ASCII"),
        ("echo", {"name_path": "x", "filter": {"a": [1]}}, "lists"),
        ("echo", {"name_path": "x", "ids": [float("nan")]}, "echo"),
        ("echo", {"name_path": "x", "ids": [object()]}, "echo"),
    ],
)
def test_arguments_that_do_not_fit_are_not_sent(
    shop: Shop, name: str, arguments: dict[str, Any], word: str
) -> None:
    error = failure(shop.url, name, arguments)
    assert isinstance(error, ToolArgumentError)
    assert word in str(error)
    assert not shop.requests


def test_only_what_is_listed_can_be_called(shop: Shop) -> None:
    error = failure(shop.url, "deleteItem", {"id": 1}, operations=["getItem"])
    assert isinstance(error, ToolNotFound)
    assert "getItem" in str(error)
    assert not shop.requests


def test_an_answer_the_document_does_not_promise_is_refused(shop: Shop) -> None:
    error = failure(shop.url, "getItem", {"id": 13})
    assert isinstance(error, ToolResultError)
    assert "id: " in str(error)


def test_a_status_without_success_is_told_with_what_the_server_says(shop: Shop) -> None:
    error = failure(shop.url, "getItem", {"id": 404})
    assert isinstance(error, ToolRaised)
    assert "404 Not Found" in str(error)
    assert "no such item" in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("reply", "kind", "word"),
    [
        (Response(b"x", media_type="image/png"), ToolResultError, "image/png"),
        (Response(b"x"), ToolResultError, "without a content type"),
        (Response(b"{", media_type="application/json"), ToolResultError, "not JSON"),
        (Response(b"\xff", media_type="application/json"), ToolResultError, "not JSON"),
        (Response(b"NaN", media_type="application/json"), ToolResultError, "not JSON"),
        (Response(b"[" * 5000, media_type="application/json"), ToolResultError, "not JSON"),
        (Response(b"9" * 9000, media_type="application/json"), ToolResultError, "not JSON"),
        (
            Response(b"x", media_type="text/plain", headers={"content-encoding": "gzip"}),
            *(ToolResultError, "compressed"),
        ),
        (Response(b"x" * 2000, media_type="text/plain"), ToolLimitError, "1,000 bytes"),
        (PlainTextResponse("\x1b[31mred\x07", 500), ToolRaised, "[31mred"),
    ],
)
def test_odd_answers_are_failures(
    shop: Shop, reply: Response, kind: type[WeftError], word: str
) -> None:
    shop.reply = lambda _: reply
    error = failure(shop.url, "page", {}, max_bytes=9_500 if word == "not JSON" else 1_000)
    assert isinstance(error, kind)
    assert word in str(error)
    assert str(error).isprintable()


def test_text_is_returned_as_it_is(shop: Shop) -> None:
    shop.reply = lambda _: Response(
        "größer".encode("latin-1"), media_type="text/x; charset=latin-1"
    )
    doc = document(_page={"get": {"operationId": "page", "responses": {"default": {}}}})
    del doc["paths"]["/page"]["get"]["responses"]["default"]
    assert ask(shop.url, "page", {}, doc=doc) == "größer"


def test_json_where_json_is_declared(shop: Shop) -> None:
    error = failure(shop.url, "page", {})
    assert isinstance(error, ToolResultError)
    assert "text/plain, not JSON: here" in str(error)


# -- repetition ----------------------------------------------------------------------------------


def busy(times: int, status: int = 503, **headers: str) -> Any:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return lambda count: (
        Response(status_code=status, headers=named) if count <= times else JSONResponse(count)
    )


def test_what_may_be_repeated_is_repeated_after_the_servers_own_delay(shop: Shop) -> None:
    clock = Hasty()
    shop.reply = busy(2, 429, Retry_After="7")
    assert ask(shop.url, "page", {}, clock=clock) == 3
    assert clock.slept == [7.0, 7.0]


def test_the_delay_may_be_a_date_or_missing(shop: Shop) -> None:
    clock = Hasty()
    shop.reply = busy(1, Retry_After="Sat, 01 Jan 2000 00:00:09 GMT")
    ask(shop.url, "page", {}, clock=clock)
    assert clock.slept == [9.0]
    shop.requests.clear()
    shop.reply = busy(2)
    ask(shop.url, "page", {}, clock=clock)
    assert clock.slept[1:] == [0.5, 1.0]


def test_it_ends_and_says_that_it_may_be_tried_later(shop: Shop) -> None:
    shop.reply = busy(99)
    error = failure(shop.url, "page", {})
    assert "503" in str(error)
    assert error.retryable
    assert len(shop.requests) == 3


@pytest.mark.parametrize("delay", ["3600", "99999999999999999999", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_nobody_waits_for_hours(shop: Shop, delay: str) -> None:
    clock = Hasty()
    shop.reply = busy(99, Retry_After=delay)
    assert failure(shop.url, "page", {}, clock=clock).retryable
    assert not clock.slept


@pytest.mark.parametrize("delay", ["soon", "-3", "\u0663", "Sat, 99 Foo"])
def test_a_delay_that_makes_no_sense_is_ignored(shop: Shop, delay: str) -> None:
    clock = Hasty()
    shop.reply = busy(1, Retry_After=delay if delay.isascii() else "x")
    ask(shop.url, "page", {}, clock=clock)
    assert clock.slept == [0.5]


def test_a_post_is_never_repeated(shop: Shop) -> None:
    doc = document(_page={"post": {"operationId": "page", "responses": {}}})
    shop.reply = busy(99, Retry_After="1")
    error = failure(shop.url, "page", {}, doc=doc, operations=["page"])
    assert not error.retryable
    assert len(shop.requests) == 1


def test_a_broken_connection_is_repeated_too() -> None:
    async def main() -> tuple[str, int]:
        async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc") as told:
            options = OpenApiOptions(told["url"], private=LOCAL)
            async with OpenApiTools(document(), ["page"], options, clock=Hasty()) as tools:
                with pytest.raises(ToolRaised, match="broke") as raised:
                    await tools.call("page", {})
                assert raised.value.retryable
                return str(raised.value), told["requests"]

    said, requests = asyncio.run(main())
    assert requests == 3
    assert "127.0.0.1" in said


def test_nobody_there_is_told() -> None:
    error = failure("http://127.0.0.1:9/v1", "page", {})
    assert "cannot connect to 127.0.0.1:9" in str(error)
    assert error.retryable


# -- keys ----------------------------------------------------------------------------------------


def locked(scheme: dict[str, Any], **more: Any) -> dict[str, Any]:
    doc = document()
    doc["components"]["securitySchemes"] = {"key": scheme}
    return {**doc, "security": [{"key": []}], **more}


SCHEMES = [
    ({"type": "http", "scheme": "Bearer"}, "authorization", "Bearer s3cret-value"),
    ({"type": "oauth2", "flows": {}}, "authorization", "Bearer s3cret-value"),
    ({"type": "apiKey", "in": "header", "name": "X-Key"}, "x-key", "s3cret-value"),
    ({"type": "apiKey", "in": "cookie", "name": "sid"}, "cookie", "sid=s3cret-value"),
    (
        {"type": "http", "scheme": "basic"},
        "authorization",
        f"Basic {base64.b64encode(b's3cret-value').decode()}",
    ),
]


@pytest.mark.parametrize(("scheme", "header", "value"), SCHEMES)
def test_a_key_goes_where_the_document_wants_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, scheme: Any, header: str, value: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    ask(shop.url, "getItem", {"id": 1}, doc=locked(scheme), auth_env="SHOP_KEY")
    assert shop.requests[0]["headers"][header] == value


def test_a_key_in_the_query_cannot_be_replaced(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret&value")
    doc = locked({"type": "apiKey", "in": "query", "name": "name"})
    ask(shop.url, "getItem", {"id": 1}, doc=doc, auth_env={"key": "SHOP_KEY"})
    assert shop.requests[0]["query"] == "name=s3cret%26value"
    error = failure(
        shop.url, "echo", {"name_path": "x", "name_query": "mine"}, doc=doc, auth_env="SHOP_KEY"
    )
    assert "the key" in str(error)


def test_without_a_scheme_in_the_document_a_key_is_a_bearer_token(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    ask(shop.url, "getItem", {"id": 1}, auth_env="SHOP_KEY")
    assert shop.requests[0]["headers"]["authorization"] == "Bearer s3cret-value"


def test_an_operation_that_is_open_gets_no_key(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    doc = locked({"type": "http", "scheme": "bearer"})
    doc["paths"]["/items/{id}"]["get"]["security"] = []
    ask(shop.url, "getItem", {"id": 1}, doc=doc, auth_env="SHOP_KEY")
    assert "authorization" not in shop.requests[0]["headers"]


def test_a_key_never_comes_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    shop.reply = lambda _: JSONResponse({"you sent": "s3cret-value"}, 401)
    error = failure(shop.url, "page", {}, auth_env="SHOP_KEY")
    assert "s3cret" not in f"{error}{error.hint}{error!r}"
    assert "auth_env" in str(error)
    told = ask(shop.url, "echo", {"name_path": "x"}, auth_env="SHOP_KEY")
    assert "s3cret" not in str(told)
    assert shop.requests[-1]["headers"]["authorization"] == "Bearer s3cret-value"


@pytest.mark.parametrize("value", [None, "", "two\nlines", "ü"])
def test_a_key_that_cannot_be_sent_is_named_by_its_variable(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("SHOP_KEY", raising=False)
    else:
        monkeypatch.setenv("SHOP_KEY", value)
    error = failure(shop.url, "getItem", {"id": 1}, auth_env="SHOP_KEY")
    assert isinstance(error, BuildError)
    assert "SHOP_KEY" in str(error)
    assert not shop.requests


# -- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "forever"),
    [
        ((), b""),  # says nothing and hangs up: see below
        ((b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-",), b"a"),
        ((b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999\r\n\r\n",), b"x"),
    ],
)
def test_a_slow_drip_is_cut_off(pieces: tuple[bytes, ...], forever: bytes) -> None:
    async def main() -> WeftError:
        limit_s = 1.0 if forever else 120.0
        async with raw(*pieces, pause_s=0.01, forever=forever) as told:
            options = OpenApiOptions(told["url"], private=LOCAL, timeout_s=limit_s, retries=0)
            async with OpenApiTools(document(), ["page"], options) as tools:
                with pytest.raises(WeftError) as raised:
                    await tools.call("page", {})
                return raised.value

    error = asyncio.run(main())
    assert isinstance(error, ToolLimitError if forever else ToolRaised)


def test_a_flood_is_cut_off() -> None:
    async def main() -> WeftError:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        async with raw(head, forever=b"x" * 65536) as told:
            options = OpenApiOptions(told["url"], private=LOCAL, max_bytes=200_000)
            async with OpenApiTools(document(), ["page"], options) as tools:
                with pytest.raises(ToolLimitError, match="200,000 bytes") as raised:
                    await tools.call("page", {})
                return raised.value

    assert not asyncio.run(main()).retryable


def test_cancelling_the_caller_hangs_up() -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
        async with raw(head, pause_s=0.01, forever=b"x") as told:
            options = OpenApiOptions(told["url"], private=LOCAL)
            async with OpenApiTools(document(), ["page"], options) as tools:
                task = asyncio.ensure_future(tools.call("page", {}))
                while not told["requests"]:
                    await asyncio.sleep(0.005)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                async with asyncio.timeout(120):
                    while "hung_up" not in told:
                        await asyncio.sleep(0.01)

    asyncio.run(main())


def test_closed_tools_say_so(shop: Shop) -> None:
    async def main() -> None:
        tools = OpenApiTools(document(), ["page"], OpenApiOptions(shop.url, private=LOCAL))
        await tools.aclose()
        await tools.aclose()
        with pytest.raises(ToolRaised, match="closed"):
            await tools.call("page", {})

    asyncio.run(main())


def test_the_tools_outlive_an_event_loop(shop: Shop) -> None:
    tools = OpenApiTools(document(), ["getItem"], OpenApiOptions(shop.url, private=LOCAL))

    async def main(last: bool) -> Any:
        found = await tools.call("getItem", {"id": 100})
        if last:
            await tools.aclose()
        else:  # what a server does with idle connections
            await tools._exchanges.popitem()[1][0].aclose()
        return found["id"]

    assert [asyncio.run(main(last)) for last in (False, True)] == [100, 100]


def test_many_calls_at_once_share_the_connections(shop: Shop) -> None:
    async def main() -> list[int]:
        options = OpenApiOptions(shop.url, private=LOCAL, connections=4)
        async with OpenApiTools(document(), ["getItem"], options) as tools:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(tools.call("getItem", {"id": 100 + n})) for n in range(30)
                ]
            return [task.result()["id"] for task in tasks]

    assert asyncio.run(main()) == [100 + n for n in range(30)]
