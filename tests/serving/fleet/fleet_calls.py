"""Short ways to ask a fleet of servers in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from tests.serving.fleet.server import Server
from weft.core.ports import ModelClient, ModelEvent, ModelRequest, Sampling
from weft.core.values import Completion, Message
from weft.serving.fleet import Fleet, FleetOptions
from weft.testing import FakeClock

T = TypeVar("T")
LONG = "s" * 2000


def asking(text: str = "hello", tokens: int | None = 8, **fields: Any) -> ModelRequest:
    """A greedy request."""
    fields.setdefault("sampling", Sampling(max_tokens=tokens, temperature=0))
    return ModelRequest((Message("user", text),), **fields)


async def events_of(client: ModelClient, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(client.generate(request)) as stream:
        return [event async for event in stream]


async def answer(client: ModelClient, request: ModelRequest) -> Completion:
    last = (await events_of(client, request))[-1]
    assert isinstance(last, Completion)
    return last


async def settle() -> None:
    """Let everything run that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)


def play(
    body: Callable[[Fleet, FakeClock], Awaitable[T]], servers: list[Server], **options: Any
) -> T:
    """What `body` gives, in virtual time; no task and no call may be left after it."""
    clock = FakeClock()

    async def main() -> T:
        fleet = Fleet(servers, FleetOptions(**options), clock=clock)
        try:
            return await body(fleet, clock)
        finally:
            await fleet.aclose()
            await settle()
            assert len(asyncio.all_tasks()) == 1
            assert not any(server.running for server in servers)

    return clock.run(main())
