"""Nodes in this process that replicas are placed on, and a bridge over them: no Ray, no servers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from weft.cluster.frames import frame
from weft.cluster.host import error_data
from weft.cluster.link import BridgeLink
from weft.cluster.process import BridgeProcess
from weft.cluster.replica_bridge import PlacedReplica, ReplicaBridge, ReplicaNeeds
from weft.core.errors import ClusterError, WeftError


class FakeReplica:
    """Implements `PlacedReplica`: ready at once, unless it is told to fail.

    `stops`: the grace of each `stop`. A graceful one lasts until `drained`.
    """

    def __init__(self, node: str, port: int, error: WeftError | None) -> None:
        self.node = node
        self.stops: list[float] = []
        self.is_lost = self.is_removed = False
        self.url = f"http://{node}:{port}/v1"
        status = "ready" if error is None else "failed"
        self._entry = {"number": 0, "url": self.url, "log": "0.log", "status": status}
        self._entry |= {"restarts": 0, "engine": port}
        self._state: dict[str, Any] = {"version": 1, "ended": False, "entry": self._entry}
        if error is not None:
            self._state |= {"ended": True, "error": error_data(error)}
        self._news = asyncio.Event()

    async def poll(self, seen: int) -> bytes:
        while self._state["version"] <= seen and not self.is_lost:
            self._news.clear()
            await self._news.wait()
        if self.is_lost:
            raise ConnectionError("the node is dead")
        return frame(self._state)

    async def stop(self, grace_s: float) -> None:
        self.stops.append(grace_s)
        if not grace_s:
            self.change(ended=True)

    def remove(self) -> None:
        self.is_removed = True

    def change(self, **fields: Any) -> None:
        """A new state."""
        self._state = {**self._state, **fields, "version": self._state["version"] + 1}
        self._news.set()

    def restart(self) -> None:
        """Its server crashed, and its supervisor starts it again."""
        self.change(entry={**self._entry, "status": "restarting", "restarts": 1})

    def lose(self) -> None:
        """Its node dies."""
        self.is_lost = True
        self._news.set()


class FakeNodes:
    """Implements `ReplicaPlacer`; each node has room for one replica."""

    def __init__(self, *nodes: str) -> None:
        self.nodes = set(nodes)
        self.placed: list[FakeReplica] = []
        self.needs: list[ReplicaNeeds] = []
        self.settings: list[dict[str, Any]] = []
        self.error: WeftError | None = None
        self._changed = asyncio.Event()

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def place(self, needs: ReplicaNeeds, settings: str) -> PlacedReplica:
        self.needs.append(needs)
        self.settings.append(json.loads(settings))
        while not (free := self.nodes - {one.node for one in self.running()}):
            self._changed.clear()
            await self._changed.wait()
        replica = FakeReplica(min(free), 8000 + len(self.placed), self.error)
        replica.remove = self._freeing(replica.remove)  # type: ignore[method-assign]
        self.placed.append(replica)
        return replica

    def running(self) -> list[FakeReplica]:
        """Replicas that take room."""
        return [one for one in self.placed if not one.is_removed]

    def add(self, node: str) -> None:
        """A further node."""
        self.nodes.add(node)
        self._changed.set()

    def kill(self, node: str) -> None:
        """A node dies."""
        self.nodes.discard(node)
        for one in self.running():
            if one.node == node:
                one.lose()

    def _freeing(self, remove: Callable[[], None]) -> Callable[[], None]:
        def freed() -> None:
            remove()
            self._changed.set()

        return freed


class FakeReplicaBridge:
    """Opens links to a bridge in this process."""

    def __init__(self, nodes: FakeNodes) -> None:
        self.links: list[BridgeLink] = []
        self.fails: ClusterError | None = None
        self._bridge = ReplicaBridge(nodes)
        self._folder = tempfile.TemporaryDirectory()
        self._server: asyncio.Server | None = None

    async def connect(self, received: Callable[..., None], ended: Callable[[], None]) -> BridgeLink:
        if self.fails is not None:
            raise self.fails
        socket = str(Path(self._folder.name, "s"))
        if self._server is None:
            self._server = await self._bridge.serve(socket)
        reader, writer = await asyncio.open_unix_connection(socket)
        process = cast(BridgeProcess, SimpleNamespace())
        self.links.append(BridgeLink(process, reader, writer, received, ended))
        return self.links[-1]

    def crash(self) -> None:
        """The connection breaks, as it does when the bridge dies."""
        self.links[-1]._writer.transport.abort()

    async def aclose(self) -> None:
        """End it after a test."""
        if self._server is not None:
            self._server.close()
        await self._bridge.aclose()
        self._folder.cleanup()
