"""Workers in this process, and a bridge over them: the protocol without Ray."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from weft.cluster.bridge import Bridge
from weft.cluster.frames import frames, read_json
from weft.cluster.host import error_of
from weft.cluster.link import BridgeLink
from weft.cluster.process import BridgeProcess
from weft.cluster.workers import ToolWorker, WorkerProcess
from weft.core.errors import ClusterError


class FakeWorker:
    """Implements `ToolWorker` over a host in this process, which may be told to fail.

    `batches`: the number of calls of each batch, `calls`: their arguments. `on_submit` runs before
    a batch reaches the host, `on_reply` after it; what they raise loses the worker.
    """

    def __init__(self, node: str, process: WorkerProcess) -> None:
        self.node = node
        self.name = f"name of {node}"
        self.process = process
        self.batches: list[int] = []
        self.calls: list[Any] = []
        self.bytes = 0
        self.is_killed = False
        self.skew_s = 0.0
        self.on_submit: Callable[[], Any] | None = None
        self.on_reply: Callable[[], Any] | None = None

    async def submit(self, batch: bytes) -> bytes:
        self._check()
        self.bytes += len(batch)
        ((_, body),) = frames(batch)
        calls = read_json(body)["calls"]
        self.batches.append(len(calls))
        self.calls += [call[-1] for call in calls]
        if self.on_submit is not None:
            await self.on_submit()
        reply = await self.process.submit(batch)
        if self.on_reply is not None:
            await self.on_reply()
        self._check()
        self.bytes += len(reply)
        return reply

    async def poll(self) -> bytes:
        self._check()
        reply = await self.process.poll()
        self._check()
        self.bytes += len(reply)
        return reply

    async def cancel(self, calls: list[int]) -> None:
        self._check()
        await self.process.cancel(calls)

    async def clock(self) -> float:
        return await self.process.clock() - self.skew_s

    def kill(self) -> None:
        self.is_killed = True

    def _check(self) -> None:
        if self.is_killed:
            raise ConnectionError("the worker is dead")


class FakeWorkers:
    """Implements `Workers` with nodes by name, which have labels.

    `fails`: so many workers do not start. `lacks`: environment variables that a node does not have.
    """

    def __init__(self, **labels: tuple[str, ...]) -> None:
        self.labels: dict[str, tuple[str, ...]] = labels or {"a": (), "b": (), "c": ("gpu",)}
        self.started: list[FakeWorker] = []
        self.fails = 0
        self.lacks: set[str] = set()
        self.skew_s = 0.0
        self.prepare: Callable[[FakeWorker], None] = lambda _: None

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def nodes(self, labels: tuple[str, ...]) -> list[str]:
        return [node for node, own in self.labels.items() if set(labels) <= set(own)]

    async def start(self, node: str, settings: Mapping[str, Any]) -> ToolWorker:
        if self.fails:
            self.fails -= 1
            raise ClusterError("no worker started")
        process = WorkerProcess(**settings)
        with patch.dict(os.environ):
            for name in self.lacks:
                os.environ.pop(name, None)
            ((header, _),) = frames(await process.ready())
        if header["kind"] == "error":
            raise error_of(header["error"])
        worker = FakeWorker(node, process)
        worker.skew_s = self.skew_s
        self.prepare(worker)
        self.started.append(worker)
        return worker


class FakeBridge:
    """Opens links to a bridge in this process; after `crash` the next link starts another one."""

    def __init__(self, workers: FakeWorkers | None = None) -> None:
        self.workers = workers or FakeWorkers()
        self.bridges: list[Bridge] = []
        self._servers: list[asyncio.Server] = []
        self._folder = tempfile.TemporaryDirectory()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def connect(self, received: Callable[..., None], ended: Callable[[], None]) -> BridgeLink:
        loop = asyncio.get_running_loop()
        if not self._servers or self._loop is not loop:
            self._loop = loop
            self._servers.clear()
            self.bridges.append(Bridge(self.workers))
            self._servers.append(await self.bridges[-1].serve(self._socket))
        reader, writer = await asyncio.open_unix_connection(self._socket)
        process = cast(BridgeProcess, SimpleNamespace())
        return BridgeLink(process, reader, writer, received, ended)

    @property
    def _socket(self) -> str:
        return str(Path(self._folder.name, str(len(self.bridges))))

    def crash(self) -> None:
        """End the bridge as its process would end: its connections close."""
        bridge = self.bridges[-1]
        for server in self._servers:
            server.close()
        self._servers.clear()
        for writer in list(bridge._writers.values()):
            with suppress(OSError):
                writer.transport.abort()
        bridge.close()

    async def aclose(self) -> None:
        """End it after a test."""
        await self.stop()
        self.clean_up()

    async def stop(self) -> None:
        """End it in this loop; another link starts another one."""
        if self._servers:
            self.crash()
        await asyncio.sleep(0)

    def clean_up(self) -> None:
        """Remove its folder, once its event loops have ended."""
        self._folder.cleanup()
