"""A gateway that really listens, in the test's own event loop, and clients for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from openai import AsyncOpenAI

from tests import manual_clock
from weft.core.ports import ModelClient, ModelEvent, ModelRequest
from weft.serving.gateway import Gateway, GatewayExchange, GatewayOptions, ServedModel
from weft.testing import FakeModel

KEY = "a-key-long-enough-for-a-test"
HELLO: Any = [{"role": "user", "content": "Hello"}]


@dataclass
class House:
    """A running gateway. `exchanges` are those that have ended."""

    gateway: Gateway
    stack: AsyncExitStack
    exchanges: list[GatewayExchange] = field(default_factory=list)
    ended: bool | None = None

    @property
    def port(self) -> int:
        return int(self.gateway.address.rpartition(":")[2])

    async def openai(self, key: str = "none", **options: Any) -> AsyncOpenAI:
        given = {"max_retries": 0, "timeout": 600.0, **options}
        client = AsyncOpenAI(base_url=f"{self.gateway.address}/v1", api_key=key, **given)
        await self.stack.enter_async_context(client)
        return client

    async def http(self) -> httpx2.AsyncClient:
        client = httpx2.AsyncClient(base_url=self.gateway.address, trust_env=False, timeout=None)
        await self.stack.enter_async_context(client)
        return client

    async def chat(self, headers: dict[str, str] | None = None, **fields: Any) -> httpx2.Response:
        client = await self.http()
        body = {"model": "fake", "messages": HELLO, **fields}
        return await client.post("/v1/chat/completions", json=body, headers=headers)

    async def told(self, count: int) -> list[GatewayExchange]:
        """The exchanges, as soon as `count` have ended: a client may know a little earlier."""
        await until(lambda: len(self.exchanges) >= count)
        assert len(self.exchanges) == count
        return self.exchanges

    async def counted(self) -> str:
        """What `/metrics` says."""
        return (await (await self.http()).get("/metrics")).text

    async def raw(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of one's own, on which `data` has been sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**16)
        self.stack.callback(writer.close)
        writer.write(data)
        await writer.drain()
        return reader, writer


class Held(FakeModel):
    """Says nothing before it is let `go`."""

    def __init__(self) -> None:
        super().__init__(["at last"])
        self.go = asyncio.Event()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().generate(request)) as events:
            async for event in events:
                await self.go.wait()
                yield event


@asynccontextmanager
async def house(*models: ModelClient | ServedModel, **options: Any) -> AsyncIterator[House]:
    """A gateway of `models` that has been drained at the end."""
    served = [
        model if isinstance(model, ServedModel) else ServedModel(model.model, model)
        for model in models
    ]
    exchanges: list[GatewayExchange] = []
    given = GatewayOptions(**{"port": 0, "drain_s": 60.0, **options})
    gateway = Gateway(served, given, exchanges.append)
    gateway.bind()
    ready = asyncio.Event()
    serving = asyncio.create_task(gateway.serve(ready.set))
    async with AsyncExitStack() as stack:
        here = House(gateway, stack, exchanges)
        await ready.wait()
        try:
            yield here
        finally:
            await stack.aclose()
            gateway.drain()
            here.ended = await serving


def run(main: Coroutine[Any, Any, None]) -> None:
    async def within() -> None:
        async with asyncio.timeout(1200):
            await main

    manual_clock.run(within())


def with_house(
    body: Callable[[House], Awaitable[None]], *models: ModelClient | ServedModel, **options: Any
) -> None:
    async def main() -> None:
        async with house(*models, **options) as here:
            await body(here)

    run(main())


async def until(true: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(120):
        while not true():
            await asyncio.sleep(0.002)


def says(text: str = "Hello there, friend") -> FakeModel:
    return FakeModel([text])
