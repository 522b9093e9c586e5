from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from tests.conformance.model_client import CheckedModelConformance, ScriptedModelConformance
from tests.serving.openai.scripted import Endpoint, EndpointServer, plays
from weft.core.fakes import FakeModel, Reply
from weft.core.ports import ModelClient
from weft.serving.openai import OpenAIModel


class TestFakeModel(ScriptedModelConformance):
    fake: FakeModel
    # A script is not held to the schema.
    test_a_wrong_schema_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.fake = FakeModel(lambda request: script(request.schema is not None))
        async with aclosing(self.fake):
            yield self.fake

    def running(self) -> int:
        return self.fake.running


class TestOpenAIModel(CheckedModelConformance):
    endpoint: Endpoint
    kind = "vllm"

    @pytest.fixture(autouse=True)
    def _server(self, endpoints: EndpointServer) -> None:
        self.endpoints = endpoints

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.endpoint = self.endpoints.add(
            lambda body: plays(script("response_format" in body), body),
            model={"owned_by": self.kind},
        )
        async with aclosing(OpenAIModel(self.endpoint.base_url, "m", idle_timeout_s=5)) as client:
            yield client

    def running(self) -> int:
        return self.endpoint.open


class TestOpenAIModelOfUnknownServer(TestOpenAIModel):
    kind = "somebody"
