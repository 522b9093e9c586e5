"""Who may come in, and what every response says about itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.ui.ui_server import House, house

API = ("/api/runs", "/api/changes", "/api/run?run=x", "/api/records?run=x", "/api/x")


@pytest.fixture(scope="module")
def here() -> Iterator[House]:
    with house() as found:
        yield found


@pytest.mark.parametrize("path", API)
def test_without_the_key_nothing_is_told(here: House, path: str) -> None:
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"authorization": f"Bearer {here.key}x"},
        {"authorization": f"Basic {here.key}"},
    )
    for headers in (*wrong, {"cookie": f"key={here.key}"}):
        response = here.stranger.get(path, headers=headers)
        assert response.status_code == 401
        assert "weft ui" in response.json()["hint"]
    assert (
        here.stranger.get(f"{path}{'&' if '?' in path else '?'}key={here.key}").status_code == 401
    )


def test_the_key_is_not_in_what_is_sent(here: House) -> None:
    assert f"#key={here.key}" in here.server.url
    assert len(here.key) >= 32
    with house() as other:
        assert other.key != here.key


@pytest.mark.parametrize("name", ["weft.example", "127.0.0.1", "127.0.0.1.nip.io", "evil"])
def test_another_host_is_refused_even_with_the_key(here: House, name: str) -> None:
    port = here.host.rpartition(":")[2]
    for host in (f"{name}:1", name, f"x{name}:{port}"):
        for path in ("/", "/api/runs"):
            assert here.http.get(path, headers={"host": host}).status_code == 403


def test_localhost_is_this_machine(here: House) -> None:
    port = here.host.rpartition(":")[2]
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert here.http.get("/api/runs", headers={"host": host}).status_code == 200


def test_pages_of_other_origins_are_refused(here: House) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", f"https://{here.host}"):
        assert here.http.get("/api/runs", headers={"origin": origin}).status_code == 403
    for site in ("cross-site", "same-site"):
        assert here.http.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403
    mine = {"origin": f"http://{here.host}", "sec-fetch-site": "same-origin"}
    response = here.http.get("/api/runs", headers=mine)
    assert response.status_code == 200
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_every_response_has_the_policy(here: House) -> None:
    answers = [
        here.http.get("/"),
        here.http.get("/main.js"),
        here.http.get("/nothing"),
        here.http.get("/api/runs"),
        here.http.get("/api/run?run=x"),
        here.stranger.get("/api/runs"),
        here.http.get("/", headers={"host": "evil"}),
        here.http.put("/api/runs"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 200, 404, 401, 403, 405]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "set-cookie" not in answer.headers
