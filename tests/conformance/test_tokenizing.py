from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.tokenizing import Client, TokenizingConformance
from tests.live_vllm import CONTEXT, NAME, LiveVllm
from tests.serving.openai.scripted import VLLM, EndpointServer, Script, Tokenizer, says
from weft.planner.choice import RoutedModel
from weft.serving.fleet import Fleet
from weft.serving.local import LocalModel
from weft.serving.openai import OpenAIModel
from weft.testing import TokenModel


class TestTokenModel(TokenizingConformance):
    tag = "<Thread>"

    # It is told to be fast, not to be shut.
    test_a_closed_client_says_so = None  # type: ignore[assignment]

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        return aclosing(TokenModel(lambda _ids, _request: (), tags=["<Thread>"]))


class TestOpenAIModel(TokenizingConformance):
    lists = True

    @pytest.fixture(autouse=True)
    def _server(self, endpoints: EndpointServer) -> None:
        self.endpoints = endpoints

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        endpoint = self.endpoints.add(says("x"), tokenizer=Tokenizer(lists=self.lists))
        return aclosing(OpenAIModel(endpoint.base_url, "m"))


class TestOpenAIModelOfAServerThatListsNoTokens(TestOpenAIModel):
    lists = False


class TestFleet(TestOpenAIModel):
    """Its first replica does not tokenize now: the other one does."""

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        endpoints = [
            self.endpoints.add(says("x"), models=Script(status=500, plain="no")),
            self.endpoints.add(says("x"), model=VLLM, tokenizer=Tokenizer()),
        ]
        return aclosing(Fleet([OpenAIModel(one.base_url, "m") for one in endpoints]))


class TestRoutedModelOfOneModel(TestOpenAIModel):
    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        endpoint = self.endpoints.add(says("x"), tokenizer=Tokenizer())
        return aclosing(RoutedModel({"only": OpenAIModel(endpoint.base_url, "m")}))


class TestLocalModel(TokenizingConformance):
    @pytest.fixture(autouse=True)
    def _weights(self, tmp_path: Path) -> None:
        pytest.importorskip("transformers", reason="weft[local] is not installed")
        from tests.serving.local import tiny

        self.folder = tmp_path
        tiny.make_tokenizer().save_pretrained(tmp_path)
        (tmp_path / "config.json").write_text("{}")
        (tmp_path / "model.safetensors").touch()

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        return aclosing(LocalModel(self.folder))


@pytest.mark.vllm
class TestVllm(TokenizingConformance):
    @pytest.fixture(autouse=True)
    def _live(self, live_vllm: LiveVllm) -> None:
        self.live = live_vllm

    @asynccontextmanager
    async def tokenizing(self) -> AsyncIterator[Client]:
        async with aclosing(OpenAIModel(self.live.base_url, NAME)) as client:
            yield client

    def test_a_text_longer_than_the_context_is_only_text(self) -> None:
        async def body(client: Client) -> None:
            text = "a word and one more " * CONTEXT
            ids = await client.encode(text)
            assert len(ids) > CONTEXT
            assert await client.decode(ids) == text

        self.tell(body)
