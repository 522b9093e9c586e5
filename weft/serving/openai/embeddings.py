"""Embeddings of texts by any OpenAI-compatible server: `POST /v1/embeddings`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from weft.core.errors import ModelNotFound, ModelOutputError
from weft.core.keywords import refuses_unknown_keywords
from weft.serving.openai.endpoint import Endpoint
from weft.serving.openai.transport import Transport

_AT_ONCE: Final = 16  # bounds an answer: 4,096 numbers of each text are 1.5 MB of JSON


class _Vector(BaseModel):
    model_config = ConfigDict(strict=True)
    index: int
    embedding: list[FiniteFloat]


class _Answer(BaseModel):
    data: list[_Vector]


class OpenAIEmbeddings:
    """A client for the embedding `model` of the server at `base_url`, which ends in `/v1` for most.

        facts = weft.Memory("facts.sqlite", search=OpenAIEmbeddings(url, "bge-m3"))

    The key is `api_key`, or the value of the environment variable `api_key_env`; servers without
    keys need neither. Raises: `ValueError` for a wrong `base_url`.
    """

    @refuses_unknown_keywords
    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout_s: float = 60.0,
    ) -> None:
        if api_key is None and api_key_env is not None:
            api_key = os.environ.get(api_key_env)
        self._endpoint = Endpoint(
            base_url,
            model,
            api_key,
            api_key_env,
            dict(headers or {}),
            idle_timeout_s=idle_timeout_s,
        )
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"OpenAIEmbeddings({self._endpoint.base_url!r}, {self.model!r})"

    @property
    def model(self) -> str:
        """The model's name."""
        return self._endpoint.model

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order; 16 texts in a request. Raises: `ModelError`."""
        transport = self._connected()
        found: list[list[float]] = []
        try:
            for start in range(0, len(texts), _AT_ONCE):
                found += await self._part(transport, list(texts[start : start + _AT_ONCE]))
        except Exception as error:  # noqa: BLE001 (a boundary: only weft's errors leave it)
            raise transport.failure(error, ()) from None
        return found

    async def aclose(self) -> None:
        """Close all connections. Harmless when repeated."""
        transport, self._transport = self._transport, None
        if transport is not None and self._loop is asyncio.get_running_loop():
            await transport.aclose()

    def _connected(self) -> Transport:
        loop = asyncio.get_running_loop()
        if self._transport is None or loop is not self._loop:  # connections belong to their loop
            self._loop, self._transport = loop, Transport(self._endpoint)
        return self._transport

    async def _part(self, transport: Transport, texts: list[str]) -> list[list[float]]:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        page = await transport.post(self._endpoint.url("embeddings"), body)
        if page is None:
            text = f"{self._endpoint.base_url} has no embeddings of {self.model}"
            raise ModelNotFound(text, hint="name a server with an embedding model")
        try:
            answer = _Answer.model_validate_json(page)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            text = f"the answer of {self._endpoint.base_url} is no list of embeddings"
            raise ModelOutputError(f"{text}: {where}: {first['msg']}") from None
        vectors = {vector.index: vector.embedding for vector in answer.data}
        if sorted(vectors) != list(range(len(texts))) or len(answer.data) != len(texts):
            text = f"{self.model} gave {len(answer.data)} embeddings for {len(texts)} texts"
            raise ModelOutputError(text)
        return [vectors[number] for number in range(len(texts))]
