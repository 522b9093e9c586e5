"""Servers on this machine say that they live, without a key."""

from __future__ import annotations

from tests.serving.ui.ui_server import house


def test_the_page_answers_healthz_without_its_key() -> None:
    with house() as page:
        answer = page.stranger.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert page.stranger.get("/api/runs").status_code == 401
        assert page.stranger.post("/healthz").status_code != 200
