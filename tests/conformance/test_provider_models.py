"""The suite of model clients, for clients of hosted APIs, against servers that play them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, ClassVar

import pytest

from tests.conformance.model_client import CheckedModelConformance
from tests.serving.openai.scripted import Endpoint, EndpointServer, Json
from tests.serving.providers.scripted import ANTHROPIC, GEMINI, OLDER, HostedApi
from weft.core.ports import ModelClient
from weft.testing import Reply


class ProviderConformance(CheckedModelConformance):
    api: ClassVar[HostedApi]
    options: ClassVar[dict[str, Any]] = {}
    endpoint: Endpoint

    @pytest.fixture(autouse=True)
    def _server(self, endpoints: EndpointServer) -> None:
        self.endpoints = endpoints

    @asynccontextmanager
    async def playing(self, script: Callable[[bool], Reply]) -> AsyncIterator[ModelClient]:
        self.endpoint = self.api.endpoint(
            self.endpoints, lambda body: self.api.plays(script(self.constrained(body)), body)
        )
        client = self.api.connect(self.endpoint, options={"idle_timeout_s": 60, **self.options})
        async with aclosing(client):
            yield client

    def constrained(self, body: Json) -> bool:
        raise NotImplementedError

    def running(self) -> int:
        return self.endpoint.open


class TestAnthropicModel(ProviderConformance):
    """Of the version in which requests have a temperature."""

    api = ANTHROPIC
    options: ClassVar[dict[str, Any]] = OLDER

    def constrained(self, body: Json) -> bool:
        return "format" in body.get("output_config", {})


class TestAnthropicModelOfToday(TestAnthropicModel):
    """Of the version without one, which the user's requests may have nevertheless."""

    options: ClassVar[dict[str, Any]] = {"ignore": ("temperature",)}


class TestGeminiModel(ProviderConformance):
    api = GEMINI

    def constrained(self, body: Json) -> bool:
        return "responseJsonSchema" in body.get("generationConfig", {})


del ProviderConformance
