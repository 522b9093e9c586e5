"""The bridge: a child process that is the driver of the cluster, on behalf of weft.

Losing the control store of a Ray cluster ends the driver's process; so that is this one. Clients
connect to a socket in a folder of the user's; the bridge ends when its parent does.

    python -m weft.cluster.bridge SOCKET tools|replicas ADDRESS
                                                 (standard input: the life line to the parent)
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from weft.cluster.frames import frame, read_frame
from weft.cluster.host import error_data
from weft.cluster.pool import WorkerPool, absent
from weft.cluster.workers import Workers
from weft.core.errors import ClusterError, WeftError, convert
from weft.core.loggers import logger

FOLDER_PREFIX: Final = "weft-bridge-"
_MOST_POOLS: Final = 8
"""Pools of one package of code that stay when nobody uses them."""
_END_S: Final = 20.0
"""What the bridge gets to end replicas, and Ray, once its parent is gone."""
_logger = logger("cluster")


class Bridge:
    """Serves clients over `workers`. Each connection is a client; its end cancels its calls."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._pools: dict[tuple[Any, ...], WorkerPool] = {}
        self._submitting: set[asyncio.Task[None]] = set()

    async def serve(self, socket: str) -> asyncio.Server:
        """Listen at `socket`, whose folder is the user's alone."""
        return await asyncio.start_unix_server(self._client, socket)

    async def aclose(self) -> None:
        """See `BridgeServer`."""
        self.close()

    def close(self) -> None:
        """End all workers."""
        for pool in self._pools.values():
            pool.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = secrets.token_hex(8)
        self._writers[client] = writer
        try:
            while (message := await read_frame(reader)) is not None:
                self._handle(client, *message)
        except (ClusterError, KeyError, TypeError, ValueError):
            _logger.exception("the bridge drops a client that sends nonsense")
        finally:
            del self._writers[client]
            for pool in self._pools.values():
                pool.forget(client)
            writer.close()

    def _handle(self, client: str, header: Mapping[str, Any], body: bytes) -> None:
        match header["kind"]:
            case "submit":
                pool = self._pool(header)
                once = bool(header["once"])
                calls = [int(call) for call in header["calls"]]
                self._keep(pool.submit(client, calls, body, once=once))
            case "open":
                self._keep(self._opened(client, int(header["route"]), self._pool(header)))
            case "labels":
                self._keep(self._looked(client, list(map(str, header["labels"]))))
            case "cancel":
                for pool in self._pools.values():
                    self._keep(pool.cancel(list(header["calls"])))
            case kind:
                raise ClusterError(f"the bridge knows no {kind!r}")

    async def _opened(self, client: str, route: int, pool: WorkerPool) -> None:
        """Tell the client how many workers there are, once there are any."""
        try:
            await pool.fill()
        except WeftError as error:
            self._tell(client, {"kind": "closed", "route": route, "error": error_data(error)}, b"")
        else:
            self._tell(client, {"kind": "opened", "route": route, "workers": pool.size}, b"")

    async def _looked(self, client: str, labels: list[str]) -> None:
        """Tell the client which labels no node has: none of them where that cannot be asked."""
        try:
            missing = await absent(self._workers, labels)
        except Exception as error:  # noqa: BLE001 - whatever Ray raises; calls will tell it
            _logger.warning("the nodes of the cluster are unknown: %s", error)
            missing = []
        self._tell(client, {"kind": "labels", "missing": missing}, b"")

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._submitting.add(task)
        task.add_done_callback(self._submitted)

    def _submitted(self, task: asyncio.Task[None]) -> None:
        self._submitting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _logger.error("the bridge failed: %s", error)
            os._exit(1)  # nothing is known of its calls now: the client is told by its end

    def _pool(self, header: Mapping[str, Any]) -> WorkerPool:
        labels, count = tuple(map(str, header["labels"])), int(header["workers"])
        variables = tuple(map(str, header["variables"]))
        settings = {
            "content": str(header["content"]),
            "code": str(header["code"]),
            "variables": variables,
        }
        silence_s = float(header["silence_s"])
        key = labels, count, *settings.values(), silence_s
        pool = self._pools.get(key)
        if pool is None:
            self._make_room()
            pool = self._pools[key] = WorkerPool(
                self._workers, labels, count, settings, silence_s, self._tell
            )
        return pool

    def _make_room(self) -> None:
        idle = [key for key, pool in self._pools.items() if pool.idle]
        idle.sort(key=lambda key: self._pools[key].used_at)
        for key in idle[: max(0, len(self._pools) + 1 - _MOST_POOLS)]:
            self._pools.pop(key).close()

    def _tell(self, client: str, header: Mapping[str, Any], body: bytes) -> None:
        writer = self._writers.get(client)
        if writer is not None and not writer.is_closing():
            writer.write(frame(header, body))


class BridgeServer(Protocol):
    """What a bridge serves: tools, or replicas of a model."""

    async def serve(self, socket: str) -> asyncio.Server:
        """Listen at `socket`, whose folder is the user's alone."""

    async def aclose(self) -> None:
        """End all that runs for clients."""


async def serve(
    socket: str, connect: Awaitable[None], bridge: BridgeServer, stop: asyncio.Event, channel: int
) -> None:
    """Connect, serve until `stop`, and end what runs.

    A frame on the file descriptor `channel` is `ready`, or the error of the connection.
    """
    try:
        await connect
    except Exception as error:  # noqa: BLE001 - told to the parent
        _say(channel, frame({"kind": "error", "error": error_data(convert(error))}))
        return
    server = await bridge.serve(socket)
    _say(channel, frame({"kind": "ready"}))
    await stop.wait()
    server.close()
    await bridge.aclose()


def _say(channel: int, message: bytes) -> None:
    with suppress(OSError):
        os.write(channel, message)


def _watch(stop: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """Ends the bridge with its parent, whose end closes standard input."""
    while os.read(0, 4096):
        pass
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(stop.set)
    threading.Timer(_END_S, lambda: os._exit(1)).start()  # where Ray hangs


def _served(what: str, address: str) -> tuple[Awaitable[None], BridgeServer]:
    """The connection to the cluster, and what is served over it."""
    if what == "replicas":
        from weft.cluster.ray_replicas import RayPlacer
        from weft.cluster.replica_bridge import ReplicaBridge

        placer = RayPlacer(address)
        return placer.connect(), ReplicaBridge(placer)
    from weft.cluster.ray_workers import RayWorkers

    workers = RayWorkers(address, partial(os._exit, 1))
    return workers.connect(), Bridge(workers)


async def main(socket: str, connect: Awaitable[None], bridge: BridgeServer) -> None:
    """The process: serves `bridge` once `connect` has connected it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_watch, args=(stop, loop), daemon=True).start()
    channel = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is no reply
    await serve(socket, connect, bridge, stop, channel)
    folder = Path(socket).parent
    if folder.name.startswith(FOLDER_PREFIX):  # its owner may have been killed
        shutil.rmtree(folder, ignore_errors=True)


def run(socket: str, connect: Awaitable[None], bridge: BridgeServer) -> None:
    """Run `main`, and end the process, whatever threads Ray has."""
    asyncio.run(main(socket, connect, bridge))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    run(sys.argv[1], *_served(*sys.argv[2:]))
