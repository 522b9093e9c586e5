"""What operations do to the world, and the keys that repeated calls are told apart by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from tests.agents.openapi.api_server import LOCAL, Hasty, Json, Shop, answers, document
from weft.agents.openapi import OpenApiOptions, OpenApiTools
from weft.core.call_context import keyed
from weft.core.errors import BuildError, NotDone, ToolRaised, WeftError
from weft.core.values import Effect

TEXT: Json = {"200": {"description": "", "content": {"text/plain": {"schema": {}}}}}
ALL = ["getItem", "deleteItem", "add-item", "pay", "put", "page"]
KEY: Json = {"name": "idempotency-key", "in": "header", "required": True, "schema": {}}
DOCUMENT = document(
    _page={
        "get": {"operationId": "page", "responses": answers({})},
        "post": {"operationId": "pay", "parameters": [KEY], "responses": TEXT},
        "put": {"operationId": "put", "responses": answers({})},
    }
)


def tools(url: str = "https://shop.example", **options: Any) -> OpenApiTools:
    settings = OpenApiOptions(**{"base_url": url, "private": LOCAL, **options})
    return OpenApiTools(DOCUMENT, ALL, settings, clock=Hasty())


def call(made: OpenApiTools, name: str, key: str = "", **arguments: Any) -> Any:
    async def main() -> Any:
        async with made:
            with keyed(key):
                return await made.call(name, arguments)

    return asyncio.run(main())


def failure(made: OpenApiTools, name: str, **arguments: Any) -> WeftError:
    with pytest.raises(WeftError) as raised:
        call(made, name, **arguments)
    return raised.value


def effects(said: Mapping[str, Effect] | None = None) -> list[Effect]:
    return [spec.effect for spec in tools(effects=said or {}).specs()]


def test_a_method_says_what_a_call_does() -> None:
    assert effects() == ["pure", "idempotent", "unknown", "idempotent", "idempotent", "pure"]
    assert not any(spec.pure for spec in tools().specs())


def test_a_workflow_knows_better() -> None:
    assert effects({"add_item": "once", "deleteItem": "once"}) == [
        *("pure", "once", "once", "idempotent", "idempotent", "pure")
    ]
    assert effects({"": "once", "getItem": "pure"}) == ["pure", *["once"] * 5]
    read, *_ = tools(effects={"getItem": "once"}, pure=True).specs()
    assert not read.pure


def test_an_effect_of_an_operation_that_there_is_not() -> None:
    with pytest.raises(BuildError, match="'buy', which is no tool"):
        effects({"buy": "once"})


def test_a_key_that_the_document_wants_is_no_argument(shop: Shop) -> None:
    spec = next(spec for spec in tools().specs() if spec.name == "pay")
    assert spec.parameters["properties"] == {}
    call(tools(shop.url), "pay", "k1")
    failure(tools(shop.url), "pay", idempotency_key="mine")
    assert [each["headers"]["idempotency-key"] for each in shop.requests] == ["k1"]


def test_one_that_is_wanted_is_sent_outside_of_a_run_too(shop: Shop) -> None:
    for _ in range(2):
        call(tools(shop.url), "pay")
    first, second = [each["headers"]["idempotency-key"] for each in shop.requests]
    assert first != second


def test_other_calls_carry_one_where_they_have_it(shop: Shop) -> None:
    call(tools(shop.url), "add_item", "k1", body={"name": "tea"})
    call(tools(shop.url), "add_item", body={"name": "tea"})
    call(tools(shop.url), "getItem", "k1", id=3)
    keys = [each["headers"].get("idempotency-key") for each in shop.requests]
    assert keys == ["k1", None, None]


def test_what_has_a_key_is_repeated_with_the_same(shop: Shop) -> None:
    shop.reply = lambda number: PlainTextResponse("later", 503 if number < 3 else 200)
    assert call(tools(shop.url), "pay", "k1") == "later"
    assert [each["headers"]["idempotency-key"] for each in shop.requests] == ["k1"] * 3


@pytest.mark.parametrize("operation", ["pay", "page"])
def test_what_must_not_be_repeated_is_asked_once(shop: Shop, operation: str) -> None:
    shop.reply = lambda _: PlainTextResponse("later", 503)
    error = failure(tools(shop.url, effects={operation: "once"}), operation)
    assert type(error) is ToolRaised
    assert not error.retryable
    assert len(shop.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429])
def test_what_the_server_refuses_has_not_happened(shop: Shop, status: int) -> None:
    shop.reply = lambda _: PlainTextResponse("no", status)
    assert isinstance(failure(tools(shop.url, retries=0), "pay"), NotDone)


@pytest.mark.parametrize("status", [408, 409, 500, 502])
def test_of_what_went_wrong_nobody_knows(shop: Shop, status: int) -> None:
    shop.reply = lambda _: PlainTextResponse("no", status)
    assert type(failure(tools(shop.url, retries=0), "pay")) is ToolRaised


def test_what_was_never_sent_has_not_happened() -> None:
    assert isinstance(failure(tools("http://127.0.0.1:9"), "pay"), NotDone)
