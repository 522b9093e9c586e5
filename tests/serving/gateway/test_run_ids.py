"""The ids of runs behind answers, in the header `x-weft-run`: of those that are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.serving.gateway.gateway_server import House, with_house
from weft.core.call_context import trace_headers
from weft.core.errors import ModelOverloaded
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta
from weft.core.values import Completion
from weft.serving.gateway import ServedModel

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Runs:
    """A model that numbers its runs. One that is not `recorded` tells nobody."""

    model = "fake"

    def __init__(self, *, recorded: bool = True, error: Exception | None = None) -> None:
        self.recorded = recorded
        self.error = error
        self.extras: list[dict[str, Any]] = []
        self.traces: list[dict[str, str]] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.extras.append(dict(request.extra))
        self.traces.append(dict(trace_headers()))
        if self.recorded and "began" in request.extra:
            request.extra["began"](f"brief-{len(self.extras)}")
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        yield TextDelta("hello")
        yield Completion("hello")

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("stream", [False, True])
def test_the_header_names_the_run_of_each_choice(stream: bool) -> None:
    async def body(house: House) -> None:
        one = await house.chat(stream=stream)
        assert one.headers.get_list("x-weft-run") == ["brief-1"]
        two = await house.chat(stream=stream, n=2)
        assert two.headers.get_list("x-weft-run") == ["brief-2", "brief-3"]
        assert "hello" in two.text
        assert [exchange.runs for exchange in await house.told(2)] == [
            ["brief-1"],
            ["brief-2", "brief-3"],
        ]

    with_house(body, ServedModel("fake", Runs(), runs=True))


def test_an_error_names_the_run_that_failed() -> None:
    async def body(house: House) -> None:
        answer = await house.chat()
        assert answer.status_code == 429
        assert answer.headers["x-weft-run"] == "brief-1"

    with_house(body, ServedModel("fake", Runs(error=ModelOverloaded("busy")), runs=True))


def test_where_nothing_is_recorded_nothing_is_named() -> None:
    async def body(house: House) -> None:
        assert "x-weft-run" not in (await house.chat()).headers
        assert "x-weft-run" not in (await house.chat(model="none")).headers

    with_house(body, ServedModel("fake", Runs(recorded=False), runs=True))


def test_clients_cannot_say_what_their_run_is_called() -> None:
    model = Runs()

    async def body(house: House) -> None:
        for field in ("began", "run"):
            answer = await house.chat(**{field: "mine"})
            assert answer.status_code == 400
            assert "x-weft-run" not in answer.headers

    with_house(body, ServedModel("fake", model))
    assert not model.extras


def test_web_pages_that_may_use_the_gateway_may_read_the_header() -> None:
    origin = "https://page.example"

    async def body(house: House) -> None:
        answer = await house.chat(headers={"origin": origin})
        exposed = answer.headers["access-control-expose-headers"]
        assert {name.strip() for name in exposed.split(",")} == {"x-request-id", "x-weft-run"}

    with_house(body, ServedModel("fake", Runs(), runs=True), origins=(origin,))


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_part_of_its_clients_trace(stream: bool) -> None:
    model = Runs()

    async def body(house: House) -> None:
        await house.chat({"traceparent": PARENT, "tracestate": "a=1"}, stream=stream)
        await house.chat(stream=stream)
        await house.chat({"traceparent": "nonsense"}, stream=stream)

    with_house(body, ServedModel("fake", model, runs=True))
    assert model.traces == [{"traceparent": PARENT, "tracestate": "a=1"}, {}, {}]
