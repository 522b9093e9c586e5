"""A server that reports no usage: a warning says that only its answers are counted."""

from __future__ import annotations

import logging

import pytest

import weft
from tests.serving.openai.scripted import EndpointServer, Script, chunk, usage


@pytest.mark.parametrize(("counted", "warnings"), [(False, 1), (True, 0)])
def test_a_server_without_usage_is_named_once(
    endpoints: EndpointServer, caplog: pytest.LogCaptureFixture, counted: bool, warnings: int
) -> None:
    parts = [chunk({"content": "a"}), chunk({"content": "b"}, "stop")]
    endpoint = endpoints.add(Script(parts + ([usage(7, 2)] if counted else [])))
    model = {"use": "openai", "model": "m", "base_url": endpoint.base_url}
    flow = weft.Flow("f", models={"m": model})
    flow.output(x=flow.map([1, 2], lambda n: flow.model("m", f"{n}")))
    with caplog.at_level(logging.WARNING, "weft.models"):
        result = flow.run_sync()
    assert result["x"] == ["ab", "ab"]
    assert result.usage.prompt_tokens == (14 if counted else 0)
    assert result.usage.completion_tokens == 4
    said = [r.getMessage() for r in caplog.records if "reports no usage" in r.getMessage()]
    assert len(said) == warnings
    assert all(endpoint.base_url in each for each in said)
