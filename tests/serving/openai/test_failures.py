from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import ask, heard, question
from tests.serving.openai.scripted import EndpointServer, Script, chunk, says
from weft.core.errors import (
    ModelNotFound,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelUnavailable,
    WeftError,
)
from weft.core.ports import Delta, TextDelta, complete
from weft.serving.openai import OpenAIModel

KEY = "sk-very-secret-0123456789"


def refusal(status: int, message: str = "because", **headers: str) -> Script:
    plain = json.dumps({"error": {"message": message, "type": "x", "code": status}})
    return Script(status=status, plain=plain, headers=headers)


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (302, ModelRequestError, False),
        (400, ModelRequestError, False),
        (401, ModelRequestError, False),
        (403, ModelRequestError, False),
        (404, ModelNotFound, False),
        (408, ModelUnavailable, True),
        (413, ModelRequestError, False),
        (422, ModelRequestError, False),
        (429, ModelOverloaded, True),
        (500, ModelUnavailable, True),
        (502, ModelUnavailable, True),
        (503, ModelOverloaded, True),
        (529, ModelOverloaded, True),
    ],
)
def test_statuses(
    endpoints: EndpointServer, status: int, error: type[WeftError], retryable: bool
) -> None:
    endpoint = endpoints.add(refusal(status))
    with pytest.raises(error, match=f"{status}: because") as raised:
        ask(endpoint)
    assert type(raised.value) is error
    assert raised.value.retryable is retryable
    assert len(endpoint.requests) == 1, "the client must not retry on its own"


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("7", 7.0),
        ("0.25", 0.25),
        ("-3", None),
        ("1e99", 600.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_in_seconds(
    endpoints: EndpointServer, told: str, seconds: float | None
) -> None:
    with pytest.raises(ModelOverloaded) as raised:
        ask(endpoints.add(refusal(429, **{"retry-after": told})))
    assert raised.value.retry_after_s == seconds


@pytest.mark.parametrize(("minutes", "low", "high"), [(5, 200, 300), (-10, 0, 0)])
def test_retry_after_as_a_date(
    endpoints: EndpointServer, minutes: int, low: float, high: float
) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
    with pytest.raises(ModelOverloaded) as raised:
        ask(endpoints.add(refusal(503, **{"retry-after": date})))
    assert raised.value.retry_after_s is not None
    assert low <= raised.value.retry_after_s <= high


def test_no_retry_after(endpoints: EndpointServer) -> None:
    with pytest.raises(ModelOverloaded) as raised:
        ask(endpoints.add(refusal(429)))
    assert raised.value.retry_after_s is None


def test_a_spent_quota_is_not_worth_a_retry(endpoints: EndpointServer) -> None:
    plain = json.dumps({"error": {"message": "no money", "code": "insufficient_quota"}})
    with pytest.raises(ModelRequestError, match="quota is spent"):
        ask(endpoints.add(Script(status=429, plain=plain)))


def test_an_unknown_model_is_told_with_those_there_are(endpoints: EndpointServer) -> None:
    listing = json.dumps({"data": [{"id": "llama"}, {"id": "qwen"}]})
    endpoint = endpoints.add(refusal(404), models=Script(plain=listing))
    with pytest.raises(ModelNotFound, match="it has: llama, qwen"):
        ask(endpoint)


def test_a_wrong_path_is_told_apart_from_a_wrong_model(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(refusal(404), models=Script(status=404, plain=""))
    with pytest.raises(ModelNotFound, match="end in /v1"):
        ask(endpoint)


def test_a_missing_key_is_told_with_its_variable(
    endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = endpoints.add(refusal(401))
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ModelRequestError, match="variable MY_KEY is not set"):
        ask(endpoint, api_key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", KEY)
    with pytest.raises(ModelRequestError, match="variable MY_KEY does not fit"):
        ask(endpoint, api_key_env="MY_KEY")
    with pytest.raises(ModelRequestError, match="api_key_env"):
        ask(endpoint)
    assert [h.get("authorization") for h in endpoint.headers if "content-length" in h] == [
        None,
        f"Bearer {KEY}",
        None,
    ]


def test_redirects_are_not_followed(endpoints: EndpointServer) -> None:
    aim = endpoints.add(says("x"))
    endpoint = endpoints.add(Script(status=307, plain="", headers={"location": aim.base_url}))
    with pytest.raises(ModelRequestError, match="redirects are not followed"):
        ask(endpoint)
    assert aim.paths == []


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as left:
        port = left.getsockname()[1]

    async def main() -> None:
        async with aclosing(OpenAIModel(f"http://127.0.0.1:{port}/v1", "m")) as client:
            await complete(client, question())

    with pytest.raises(ModelUnavailable, match="cannot connect") as raised:
        asyncio.run(main())
    assert raised.value.retryable


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "out of memory", "code": 500}},
        {"error": {"message": "out of memory", "type": "server_error", "code": "boom"}},
        {"error": "out of memory"},
    ],
    ids=["number", "word", "text"],
)
def test_an_error_in_the_middle_of_a_stream(endpoints: EndpointServer, event: Any) -> None:
    deltas: list[Delta] = []
    with pytest.raises(ModelUnavailable, match="out of memory") as raised:
        heard(endpoints.add(Script([chunk({"content": "so far"}), event])), deltas)
    assert raised.value.retryable
    assert deltas == [TextDelta("so far")]


def test_an_error_with_a_status_in_the_middle_of_a_stream(endpoints: EndpointServer) -> None:
    event = {"error": {"message": "slow down", "code": 429}}
    with pytest.raises(ModelOverloaded, match="slow down"):
        ask(endpoints.add(Script([event])))


@pytest.mark.parametrize(
    "event",
    ["<html>", "{", "[]", '{"choices": 3}', '{"usage": {"prompt_tokens": -1}}', "[" * 9999],
)
def test_nonsense_in_a_stream(endpoints: EndpointServer, event: str) -> None:
    with pytest.raises(ModelUnavailable, match="no answer"):
        ask(endpoints.add(Script([chunk({"content": "x"}), event])))


def test_a_request_that_is_no_json(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"))
    with pytest.raises(ModelRequestError, match="cannot be sent"):
        ask(endpoint, question(extra={"a": object()}))


def test_an_echoed_key_is_cut_out_of_everything(endpoints: EndpointServer) -> None:
    told = f"wrong key {KEY} and token hunter2-hunter2 \x1b[31mred"
    endpoint = endpoints.add(refusal(400, told))
    with pytest.raises(ModelRequestError, match=re.escape("wrong key *** and token ***")) as raised:
        ask(endpoint, api_key=KEY, headers={"x-token": "hunter2-hunter2"})
    shown = f"{raised.value!r} {raised.value} {raised.value.failure()}"
    assert KEY not in shown
    assert "hunter2" not in shown
    assert "\x1b" not in shown
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_client_shows_no_credentials() -> None:
    client = OpenAIModel("http://127.0.0.1:9/v1", "m", api_key=KEY, headers={"x-token": KEY})
    assert KEY not in repr(client)
    assert KEY not in repr(vars(client))


def test_nothing_of_the_environment_goes_to_a_foreign_server(
    endpoints: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"x-custom: {KEY}")
    endpoint = endpoints.add(says("x"))
    ask(endpoint)
    assert KEY not in str(endpoint.headers)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://h/v1", "http://", "http://u:p@h/v1", "http://h/v1?key=1"]
)
def test_a_base_url_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="base_url") as raised:
        OpenAIModel(url, "m")
    assert "u:p" not in str(raised.value)


@pytest.mark.parametrize(
    "script",
    [
        Script(plain="<html>Welcome</html>", headers={"content-type": "text/html"}),
        Script(plain="Not here", headers={"content-type": "text/plain"}),
        Script(plain="[]"),
        Script(["<html>"]),
        Script(),
    ],
    ids=["page", "text", "json", "event", "nothing"],
)
def test_what_is_no_answer_at_all_may_come_of_a_wrong_base_url(
    endpoints: EndpointServer, script: Script
) -> None:
    with pytest.raises(ModelUnavailable) as raised:
        ask(endpoints.add(script))
    assert raised.value.hint == "does base_url point at an OpenAI-compatible server?"


BIG = "x" * 100_000


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (Script([chunk({"content": BIG})], repeat=True), "1,000,000 characters"),
        (Script([chunk({"content": ""}, token_ids=[1] * 9999)], repeat=True), "1,000,000 char"),
        (
            Script([chunk({"tool_calls": [{"function": {"arguments": BIG}}]})], repeat=True),
            "1,000,000 characters",
        ),
        (Script([chunk({"refusal": BIG})], repeat=True), "1,000,000 characters"),
        (Script([BIG * 50]), "one event of more than"),
        (Script(plain=BIG, repeat=True), "body of more than"),
        (Script(status=500, plain=BIG, repeat=True), "body of more than"),
    ],
    ids=["text", "tokens", "arguments", "refusal", "one event", "body", "error body"],
)
def test_a_flood_ends_in_a_typed_error(
    endpoints: EndpointServer, script: Script, told: str
) -> None:
    endpoint = endpoints.add(script)
    with pytest.raises(ModelOutputError, match=told) as raised:
        ask(endpoint, max_answer_chars=1_000_000)
    assert not raised.value.retryable


def test_a_flood_instead_of_a_listing(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), models=Script(plain=BIG, repeat=True))
    with pytest.raises(ModelOutputError, match="body of more than"):
        ask(endpoint)


def test_compressed_data_is_refused(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x", headers={"content-encoding": "gzip"}))
    with pytest.raises(ModelUnavailable, match="compressed"):
        ask(endpoint)
    assert {headers["accept-encoding"] for headers in endpoint.headers} == {"identity"}
