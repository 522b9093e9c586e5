"""A JSON answer that max_tokens cut says so, and where."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving.openai.scripted import EndpointServer, Script, chunk, usage
from weft import Flow
from weft.testing import FakeModel

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
CUT = "{'x': 'no end".replace("'", '"')


def why(model: Any) -> str:
    flow = Flow("f", models={"m": model})
    flow.output(r=flow.model("m", "hi", schema=SCHEMA, max_tokens=3))
    return flow.run_sync().missing["r"]


@pytest.mark.parametrize("counts", [True, False], ids=["counted", "uncounted"])
def test_one_of_a_server(endpoints: EndpointServer, counts: bool) -> None:
    chunks = [chunk({"content": CUT}), chunk({}, "length")]
    endpoint = endpoints.add(Script([*chunks, usage(5, 3)] if counts else chunks))
    told = why({"use": "openai", "model": "m", "base_url": endpoint.base_url})
    assert "the answer was cut off at 3 tokens (raise max_tokens" in told
    assert "Unterminated" not in told


def test_one_of_any_other_client() -> None:
    told = why(FakeModel([f"{CUT} in sight"]))
    assert "the answer was cut off at 3 tokens" in told


def test_one_that_was_not_cut_is_no_json(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"content": CUT}), chunk({}, "stop"), usage(5, 3)]))
    told = why({"use": "openai", "model": "m", "base_url": endpoint.base_url})
    assert "not JSON: Unterminated string" in told
