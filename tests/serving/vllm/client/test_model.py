"""A model on vLLM as a client: one lease for all calls, given back whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from weft.core.errors import ModelUnavailable, StartError
from weft.core.ports import (
    ModelEvent,
    ModelRequest,
    Program,
    Sampling,
    Startable,
    Warmable,
    complete,
)
from weft.core.values import Completion, Message
from weft.serving.vllm.client import model as module
from weft.serving.vllm.client.model import VllmModel
from weft.serving.vllm.launch.decoders import parse_speculative
from weft.serving.vllm.launch.spec import ServeSpec
from weft.testing import FakeModel

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
        return _Lease(self, spec=spec)


@dataclass
class _Lease:
    servers: Servers
    name: str = "m"
    urls: tuple[str, ...] = ("http://127.0.0.1:9/v1",)
    id: str = "m-1"
    spec: ServeSpec = field(default_factory=lambda: ServeSpec("m"))

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


class _Written(FakeModel):
    """Answers that say which tokens they are."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().generate(request):
            if isinstance(event, Completion):
                yield replace(event, token_ids=(5, 6, 7))
            else:
                yield event


@pytest.mark.parametrize(
    ("decode", "replicas", "node", "told"),
    [
        ("weft:8", 2, "flow/notes", [("m-1", "flow/notes", (5, 6, 7))]),
        ("weft:8", 1, "flow/notes", []),
        ("weft:8", 2, "", []),
        ("ngram:8", 2, "flow/notes", []),
    ],
)
@pytest.mark.parametrize("broken", [False, True])
def test_proposers_of_several_servers_are_told_what_one_of_them_wrote(
    decode: str,
    replicas: int,
    node: str,
    told: list[object],
    broken: bool,
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    heard: list[object] = []

    async def share_text(folder: Path, label: str, tokens: tuple[int, ...]) -> int:
        heard.append((folder.name, label, tokens))
        return 0

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path / "file" if broken else tmp_path))
    monkeypatch.setattr(module, "share_text", share_text)
    monkeypatch.setattr(VllmModel, "_replica", lambda *_: _Written(lambda _: "one two", model="m"))

    async def main() -> None:
        servers.ready.set()
        model = VllmModel(ServeSpec("m", decode=parse_speculative(decode), replicas=replicas))
        request = replace(ASKING, program=Program("run", node=node))
        assert (await complete(model, request)).text == "one two"
        await model.aclose()

    asyncio.run(main())
    assert heard == ([] if broken else told)


class _Dead(FakeModel):
    """A replica whose server is gone."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise ModelUnavailable("connection refused")
        yield


def test_a_serving_that_moved_is_found_again(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"
    needs: list[bool] = []

    def replica(_: VllmModel, url: str, name: str) -> FakeModel:
        return (_Dead if url == old else FakeModel)(lambda _: url, model="m")

    async def renewed(
        lease: _Lease, wanted: ServeSpec, *, needed: bool, keep_alive_s: float
    ) -> Any:
        needs.append(needed)
        return replace(lease, urls=(new,))

    monkeypatch.setattr(VllmModel, "_replica", replica)
    monkeypatch.setattr(module, "renewed", renewed)

    async def main() -> None:
        servers.ready.set()
        model = VllmModel(ServeSpec("m"))
        assert (await complete(model, ASKING)).text == new
        assert (await complete(model, ASKING)).text == new
        await model.aclose()

    asyncio.run(main())
    assert (servers.starts, servers.released, needs) == (1, 1, [True])
