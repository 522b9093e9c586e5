from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from tests.conformance.model_client import (
    IN_GRAMMAR,
    CheckedModelConformance,
    ScriptedModelConformance,
)
from tests.serving.openai.scripted import Endpoint, EndpointServer, plays
from weft.core.ports import Capabilities, ModelClient
from weft.serving.fleet import Fleet, FleetOptions
from weft.serving.openai import OpenAIModel
from weft.testing import FakeModel, Reply

# What repeats a refused call has tests of its own, in virtual time.
ONCE = FleetOptions(retries=0)


class TestFleetOfFakes(ScriptedModelConformance):
    fakes: tuple[FakeModel, ...]
    options = ONCE
    # A script is not held to the schema.
    test_a_wrong_schema_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.fakes = tuple(
            FakeModel(lambda request: script(request.schema is not None)) for _ in range(2)
        )
        async with aclosing(Fleet(self.fakes, self.options)) as fleet:
            yield fleet

    def running(self) -> int:
        return sum(fake.running for fake in self.fakes)


class TestFleetOfCapableFakes(TestFleetOfFakes):
    # Nor is it held to a grammar.
    test_a_wrong_grammar_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        offered = Capabilities(structured_output=True, grammar=True, continuation=True)
        self.fakes = tuple(
            FakeModel(
                lambda asked: IN_GRAMMAR if asked.grammar else script(asked.schema is not None),
                capabilities=offered,
            )
            for _ in range(2)
        )
        async with aclosing(Fleet(self.fakes, self.options)) as fleet:
            yield fleet


class TestPlainFleetOfFakes(TestFleetOfFakes):
    options = FleetOptions.plain()


class TestNarrowFleetOfFakes(TestFleetOfFakes):
    options = FleetOptions(retries=0, in_flight=1)


class TestFleetOfEndpoints(CheckedModelConformance):
    replicas: tuple[Endpoint, ...]

    @pytest.fixture(autouse=True)
    def _server(self, endpoints: EndpointServer) -> None:
        self.endpoints = endpoints

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.replicas = tuple(
            self.endpoints.add(
                lambda body: plays(script("response_format" in body), body),
                model={"owned_by": "vllm"},
            )
            for _ in range(2)
        )
        clients = [
            OpenAIModel(endpoint.base_url, "m", idle_timeout_s=60) for endpoint in self.replicas
        ]
        async with aclosing(Fleet(clients, ONCE)) as fleet:
            yield fleet

    def running(self) -> int:
        return sum(endpoint.open for endpoint in self.replicas)
