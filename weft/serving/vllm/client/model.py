"""A model on vLLM as a client: finds or starts its servers, and replaces servers that are gone.

Leaves processes to `demand` and routing to `weft.serving.fleet`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from weft.core.errors import ModelUnavailable, ServeError
from weft.core.ports.model import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Completion, Message
from weft.serving.fleet import Fleet, FleetOptions
from weft.serving.openai import OpenAIModel
from weft.serving.vllm.client.demand import ServerLease, demand, renewed
from weft.serving.vllm.drafting.shared_texts import share_text
from weft.serving.vllm.launch.decoders import OURS
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise.state_folders import drafting_folder


@dataclass(frozen=True, slots=True)
class VllmConnection:
    """How to talk to running servers.

    `client` contains further arguments of `OpenAIModel`. `keep_alive_s`: how long servers that this
    client started stay after their last use.
    """

    fleet: FleetOptions = field(default_factory=FleetOptions)
    client: Mapping[str, Any] = field(default_factory=dict)
    keep_alive_s: float = 0.0


class VllmModel:
    """Implements `ModelClient` and `Tokenizing`. Its servers end with it, unless others use them.

    Raises, when first used: `EngineMissing`, `SpecError`, `StartError`.
    """

    def __init__(self, spec: ServeSpec, connection: VllmConnection | None = None) -> None:
        self._spec = spec
        self._connection = connection or VllmConnection()
        self._opening = asyncio.Lock()
        self._lease: ServerLease | None = None
        self._fleet: Fleet | None = None
        self._urls: list[str] = []
        self._closed = False

    @property
    def model(self) -> str:
        return self._spec.name

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """Find or start the servers; `show` receives the stages. Harmless when repeated."""
        await self._open(show)

    async def capabilities(self) -> Capabilities:
        return await (await self._open()).capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        fleet = await self._open()
        async with aclosing(fleet.generate(request)) as stream:
            async for event in stream:
                if isinstance(event, Completion):
                    await self._share(request, event)
                yield event

    async def warm(self, request: ModelRequest) -> None:
        """Compute the known part of a prompt ahead of time. See `Fleet.warm`."""
        await (await self._open()).warm(request)

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """See `Tokenizing`: uses the server's tokenizer."""
        return await (await self._open()).encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await (await self._open()).encode_chat(
            messages, chat_template_kwargs=chat_template_kwargs
        )

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await (await self._open()).decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await (await self._open()).special_token(text)

    async def aclose(self) -> None:
        self._closed = True
        if self._fleet is not None:
            await self._fleet.aclose()
        if self._lease is not None:
            await self._lease.release()
            self._lease = None

    async def _open(self, show: Callable[[str], None] | None = None) -> Fleet:
        async with self._opening:
            self._refuse_closed()
            if self._fleet is None:
                keep_alive_s = self._connection.keep_alive_s
                lease = await demand(self._spec, keep_alive_s=keep_alive_s, show=show)
                if self._closed:
                    await lease.release()
                    self._refuse_closed()
                self._lease = lease
                self._urls = list(lease.urls)
                replicas = [self._replica(url, lease.name) for url in lease.urls]
                self._fleet = Fleet(replicas, self._connection.fleet, locate=self._locate)
            return self._fleet

    async def _locate(self, number: int, needed: bool) -> OpenAIModel | None:
        """A client for the new address of replica `number`, if it has one. See `Locate`."""
        async with self._opening:
            if self._closed or self._lease is None:
                return None
            keep_alive_s = self._connection.keep_alive_s
            lease = await renewed(self._lease, self._spec, needed=needed, keep_alive_s=keep_alive_s)
            if lease is None:
                return None
            self._lease = lease
            url = lease.urls[number % len(lease.urls)]
            if url == self._urls[number]:
                return None
            self._urls[number] = url
            return self._replica(url, lease.name)

    async def _share(self, request: ModelRequest, answer: Completion) -> None:
        """Share the answer for a program's node with the proposers of the other servers."""
        lease, program = self._lease, request.program
        if lease is None or program is None or not program.node or not answer.token_ids:
            return
        if lease.spec.decode.method == OURS and lease.spec.replicas * lease.spec.dp > 1:
            with suppress(ServeError):  # costs drafts only
                await share_text(drafting_folder(lease.id), program.node, answer.token_ids)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"the client of {self.model} is closed", retryable=False)

    def _replica(self, url: str, name: str) -> OpenAIModel:
        options = {
            "api_key_env": self._spec.api_key_env,
            "priority": True,
            "decoder": self._spec.decode.method,
        }
        return OpenAIModel(url, name, **options | dict(self._connection.client))
