"""A model under its declared name; and the limits of models that are composed of others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import Any

from weft.core.errors import CapabilityError
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Startable,
    Tokenizing,
)
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Message
from weft.workflow.document.unit import Unit


def declared_model(
    client: ModelClient, unit: Unit, name: str, decode: DecodeSpec = AUTOREGRESSIVE
) -> ModelClient:
    """`client` as the model that `unit` calls `name`, with its adapter; closed as `client` is.

    Its calls take the slots of that name; reports and errors call it as `client` does. `decode` is
    the default decoder of requests.
    """
    adapter = adapter_of(name, unit)
    if isinstance(client, Tokenizing):
        return _TokenizingModel(client, client, name, adapter, decode)
    return _DeclaredModel(client, name, adapter, decode)


def adapter_of(model: str, unit: Unit) -> str | None:
    """The LoRA adapter of the model that `unit` calls `model`, if any."""
    declared = unit.document.models.get(model)
    served = declared is not None and declared.use in ("openai", "vllm")
    return declared.options.get("adapter") if declared and served else None


class _DeclaredModel:
    """Implements `ModelClient` and `Startable`."""

    def __init__(
        self, client: ModelClient, name: str, adapter: str | None, decode: DecodeSpec
    ) -> None:
        self._client = client
        self._name = name
        self._adapter = adapter
        self._decode = decode

    @property
    def model(self) -> str:
        return self._client.model

    @property
    def slots(self) -> str:
        """The name of its slots."""
        return self._name

    async def capabilities(self) -> Capabilities:
        return await self._client.capabilities()

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        if isinstance(self._client, Startable):
            await self._client.start(show)

    def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._adapter is not None:
            request = replace(request, adapter=self._adapter)
        if request.decode == AUTOREGRESSIVE:
            request = replace(request, decode=self._decode)
        return self._client.generate(request)

    async def aclose(self) -> None:
        await self._client.aclose()


class _TokenizingModel(_DeclaredModel):
    """Implements `Tokenizing` too."""

    def __init__(
        self,
        client: ModelClient,
        tokens: Tokenizing,
        name: str,
        adapter: str | None,
        decode: DecodeSpec,
    ) -> None:
        super().__init__(client, name, adapter, decode)
        self._tokens = tokens

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return await self._tokens.encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self._tokens.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._tokens.decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await self._tokens.special_token(text)


def check_chat_only(request: ModelRequest, what: str, hint: str, *, schema: bool = False) -> None:
    """Raise `CapabilityError` unless `request` is a plain chat; `schema`: it may have a schema.

    `what` is the model in words, such as "brief is a workflow".
    """
    features = {
        "prompt token ids": bool(request.prompt_token_ids),
        "tools": bool(request.tools) and request.tool_choice != "none",
        "an answer that fits a schema": request.schema is not None and not schema,
        "an answer in a grammar": request.grammar is not None,
        "going on with an answer": request.continues,
        "logprobs": request.logprobs or request.top_logprobs > 0,
        "stop tokens": bool(request.sampling.stop_token_ids),
        "placed prompts": bool(request.placement),
        "media in messages": any(message.media for message in request.messages if message.parts),
        "adapters": request.adapter is not None,
        "concurrent attention": request.attention is not None,
        f"the decoder {request.decode.method!r}": request.decode != AUTOREGRESSIVE,
    }
    for name, wanted in features.items():
        if wanted:
            raise CapabilityError(f"{what}: no {name}", hint=hint)
