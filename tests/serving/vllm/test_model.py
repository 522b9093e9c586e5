"""A model on vLLM as a client: one lease for all calls, given back whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from weft.core.errors import ModelUnavailable, StartError
from weft.core.fakes import FakeModel
from weft.core.ports import ModelRequest, Sampling, Startable, Warmable, complete
from weft.core.values import Message
from weft.serving.vllm import model as module
from weft.serving.vllm.model import VllmModel
from weft.serving.vllm.spec import ServeSpec

ASKING = ModelRequest((Message("user", "Hello"),), sampling=Sampling(max_tokens=3))


@dataclass
class Servers:
    """In the place of `demand`: counts leases, and starts when it is let go."""

    fails: int = 0
    starts: int = 0
    released: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def demand(
        self, spec: ServeSpec, *, keep_alive_s: float, show: Callable[[str], None] | None
    ) -> Any:
        self.starts += 1
        if show is not None:
            show("starting")
        await self.ready.wait()
        if self.starts <= self.fails:
            raise StartError("no memory")
        return _Lease(self)


@dataclass
class _Lease:
    servers: Servers
    name: str = "m"
    urls: tuple[str, ...] = ("http://127.0.0.1:9/v1",)

    async def release(self) -> None:
        self.servers.released += 1


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers()
    monkeypatch.setattr(module, "demand", found.demand)
    monkeypatch.setattr(VllmModel, "_replica", lambda *_: FakeModel(lambda _: "one two", model="m"))
    return found


def test_many_calls_share_one_start_and_one_lease(servers: Servers) -> None:
    async def main() -> None:
        model = VllmModel(ServeSpec("m"))
        assert isinstance(model, Startable)
        assert isinstance(model, Warmable)
        said: list[str] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(model.start(said.append))
            calls = [group.create_task(complete(model, ASKING)) for _ in range(5)]
            servers.ready.set()
        assert [call.result().text for call in calls] == ["one two"] * 5
        assert said == ["starting"]
        await model.aclose()
        await model.aclose()

    asyncio.run(main())
    assert (servers.starts, servers.released) == (1, 1)


def test_a_start_that_fails_may_be_tried_again(servers: Servers) -> None:
    servers.fails = 1

    async def main() -> None:
        servers.ready.set()
        model = VllmModel(ServeSpec("m"))
        with pytest.raises(StartError, match="no memory"):
            await complete(model, ASKING)
        assert (await complete(model, ASKING)).text == "one two"
        await model.aclose()

    asyncio.run(main())
    assert (servers.starts, servers.released) == (2, 1)


def test_closed_while_it_starts_it_keeps_nothing(servers: Servers) -> None:
    async def main() -> None:
        model = VllmModel(ServeSpec("m"))
        call = asyncio.ensure_future(complete(model, ASKING))
        while not servers.starts:
            await asyncio.sleep(0)
        await model.aclose()
        servers.ready.set()
        with pytest.raises(ModelUnavailable, match="closed"):
            await call
        with pytest.raises(ModelUnavailable, match="closed"):
            await model.capabilities()

    asyncio.run(main())
    assert (servers.starts, servers.released) == (1, 1)
