from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from tests.conformance.model_client import (
    GRAMMAR,
    IN_GRAMMAR,
    CheckedModelConformance,
    ScriptedModelConformance,
)
from tests.serving.openai.scripted import Endpoint, EndpointServer, Json, Script, plays
from weft.core.ports import Capabilities, ModelClient
from weft.serving.openai import OpenAIModel
from weft.testing import FakeModel, Reply


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


class TestCapableFakeModel(TestFakeModel):
    # Nor is it held to a grammar.
    test_a_wrong_grammar_is_a_request_error = None  # type: ignore[assignment]

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.fake = FakeModel(
            lambda request: IN_GRAMMAR if request.grammar else script(request.schema is not None),
            capabilities=Capabilities(structured_output=True, grammar=True, continuation=True),
        )
        async with aclosing(self.fake):
            yield self.fake


class TestOpenAIModel(CheckedModelConformance):
    endpoint: Endpoint
    kind = "vllm"
    version = Script(plain='{"version": "0.32.0"}')
    # What is played reads no grammar.
    test_a_wrong_grammar_is_a_request_error = None  # type: ignore[assignment]

    @pytest.fixture(autouse=True)
    def _server(self, endpoints: EndpointServer) -> None:
        self.endpoints = endpoints

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.endpoint = self.endpoints.add(
            lambda body: plays(self._reply(script, body), body),
            model={"owned_by": self.kind},
            version=self.version,
        )
        async with aclosing(OpenAIModel(self.endpoint.base_url, "m", idle_timeout_s=60)) as client:
            yield client

    def running(self) -> int:
        return self.endpoint.open

    def _reply(self, script: Callable[[bool], Reply], body: Json) -> Reply:
        held = body.get("structured_outputs") == {"grammar": GRAMMAR}
        return IN_GRAMMAR if held else script("response_format" in body)


class TestOpenAIModelOfOldVllm(TestOpenAIModel):
    version = Script(plain='{"version": "0.10.2"}')


class TestOpenAIModelOfUnknownServer(TestOpenAIModel):
    kind = "somebody"
    version = Script(status=404, plain="")
