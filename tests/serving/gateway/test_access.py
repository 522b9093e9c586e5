"""Who may come in, and what everybody gets: ids, headers, statuses."""

from __future__ import annotations

import json
import re

import httpx2

from tests.serving.gateway.gateway_server import HELLO, KEY, House, says, with_house
from weft.serving.gateway import GatewayKeys

ORIGIN = "https://chat.example"


def error(response: httpx2.Response) -> tuple[int, str]:
    body = response.json()["error"]
    assert set(body) == {"message", "type", "param", "code"}
    return response.status_code, str(body["code"])


def test_everything_wrong_is_answered_in_openais_form() -> None:
    async def body(house: House) -> None:
        http = await house.http()
        assert (await http.get("/v1/nothing")).json()["error"]["message"].endswith("/v1")
        assert (await http.get("/")).status_code == 404
        not_allowed = await http.put("/v1/models")
        assert not_allowed.status_code == 405
        assert "GET" in not_allowed.headers["allow"]
        assert error(not_allowed)[0] == 405
        assert error(await http.options("/v1/chat/completions"))[0] == 405
        assert error(await http.get("/v1/models/other"))[0] == 404
        text = await http.post("/v1/chat/completions", content="{}")
        assert error(text)[0] == 415
        wrong = {"content-type": "application/json"}
        assert error(await http.post("/v1/chat/completions", content="{", headers=wrong)) == (
            400,
            "invalid_json",
        )
        assert error(await house.chat(model="x")) == (404, "model_not_found")

    with_house(body, says())


def test_models_are_listed_with_and_without_a_slash() -> None:
    async def body(house: House) -> None:
        http = await house.http()
        listed = (await http.get("/v1/models")).json()
        assert [card["id"] for card in listed["data"]] == ["fake"]
        assert (await http.get("/v1/models/")).json() == listed
        assert (await http.get("/v1/models/fake/")).json() == listed["data"][0]
        head = await http.head("/v1/models")
        assert (head.status_code, head.content) == (200, b"")
        answer = await http.post("/v1/chat/completions/", json={"model": "fake", "messages": HELLO})
        assert answer.status_code == 200

    with_house(body, says())


def test_a_harmless_request_id_is_kept_and_any_other_replaced() -> None:
    async def body(house: House) -> None:
        for sent in ("abc-1.2:3", "x" * 128):
            answer = await house.chat(headers={"x-request-id": sent})
            assert answer.headers["x-request-id"] == sent
        assert [exchange.id for exchange in await house.told(2)] == ["abc-1.2:3", "x" * 128]
        http = await house.http()
        for sent in ("", "a b", "x" * 129, "<script>", "\xc3\xa4"):
            headers = {b"x-request-id": sent.encode("latin-1")}
            answer = await http.get("/v1/models", headers=headers)
            assert re.fullmatch("req_[0-9a-f]{32}", answer.headers["x-request-id"])
            assert answer.headers["x-content-type-options"] == "nosniff"

    with_house(body, says())


def test_keys_are_asked_for_everywhere_but_of_health_checks() -> None:
    async def body(house: House) -> None:
        http = await house.http()
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": KEY}):
            refused = await http.get("/v1/models", headers=headers)
            assert error(refused) == (401, "invalid_api_key")
            assert refused.headers["www-authenticate"] == "Bearer"
        assert (await http.get("/metrics")).status_code == 401
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        shown = {"authorization": f"bearer {KEY}"}
        assert (await http.get("/v1/models", headers=shown)).status_code == 200
        assert (await http.get("/metrics", headers=shown)).status_code == 200
        assert KEY not in repr(house.exchanges)

    with_house(body, says(), keys=GatewayKeys([KEY]))


def test_web_pages_cannot_drive_a_local_gateway() -> None:
    async def body(house: House) -> None:
        for origin in (ORIGIN, "null", "http://localhost:3000"):
            refused = await house.chat(headers={"origin": origin})
            assert error(refused) == (403, "foreign_origin")
            assert "access-control-allow-origin" not in refused.headers
        for site in ("cross-site", "same-site"):
            refused = await house.chat(headers={"sec-fetch-site": site})
            assert error(refused) == (403, "foreign_origin")
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]"):
            refused = await house.chat(headers={"host": host})
            assert error(refused) == (403, "foreign_host")
        for host in ("localhost", f"LOCALHOST:{house.port}", "127.0.0.1:1", "[::1]:8"):
            assert (await house.chat(headers={"host": host})).status_code == 200
        for site in ("same-origin", "none"):
            assert (await house.chat(headers={"sec-fetch-site": site})).status_code == 200
        await house.told(16)

    with_house(body, says())


def test_an_origin_that_is_named_may() -> None:
    async def body(house: House) -> None:
        http = await house.http()
        asked = {
            "origin": ORIGIN,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        }
        preflight = await http.options("/v1/chat/completions", headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == ORIGIN
        shown = {"origin": ORIGIN, "authorization": f"Bearer {KEY}"}
        answer = await house.chat(headers=shown)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        other = await house.chat(headers={**shown, "origin": "https://other.example"})
        assert error(other) == (403, "foreign_origin")

    with_house(body, says(), origins=(ORIGIN,), keys=GatewayKeys([KEY]))


def test_a_chat_that_is_not_whole_is_counted_and_reported() -> None:
    async def body(house: House) -> None:
        await house.chat()
        await house.chat(model="no\nsuch \x1b[31mmodel")
        await house.told(2)
        counted = await house.counted()
        assert 'weft_gateway_requests_total{model="fake",status="200"} 1.0' in counted
        assert 'weft_gateway_requests_total{model="",status="404"} 1.0' in counted
        assert 'weft_gateway_tokens_total{kind="completion",model="fake"} 3.0' in counted
        assert "such" not in counted
        assert [exchange.status for exchange in house.exchanges] == [200, 404]
        assert [exchange.ok for exchange in house.exchanges] == [True, False]
        assert "\x1b" not in json.dumps(house.exchanges[1].error)

    with_house(body, says())
