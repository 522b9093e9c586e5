"""Replicas as the bridge sees them: places them, passes their states on, and ends them.

Each connection owns the replicas that it places: its end is theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from weft.cluster.frames import frame, frames, read_frame
from weft.cluster.host import error_data
from weft.core.errors import ClusterError, convert
from weft.core.loggers import logger

_logger = logger("cluster")
_SILENCE_S: Final = 30.0
"""A replica that gives no sign for so long is lost. Ray tells a dead node sooner."""
_END_S: Final = 15.0
"""What a replica that is to end at once gets, before its process is killed."""


@dataclass(frozen=True, slots=True)
class ReplicaNeeds:
    """What a node must have: room for `ranks` processes that compute, and all `labels`."""

    ranks: int
    device: str
    labels: tuple[str, ...] = ()

    def bundle(self, *, gpus: bool) -> dict[str, float]:
        """The resources, as Ray names them; `gpus`: the cluster has any."""
        labels = dict.fromkeys(self.labels, _A_LITTLE)
        if self.device == "cuda" or (self.device == "auto" and gpus):
            return {**labels, "CPU": 1.0, "GPU": float(self.ranks)}
        return {**labels, "CPU": float(self.ranks)}


_A_LITTLE: Final = 0.001
"""Of a label, so that any number of replicas finds it."""


class PlacedReplica(Protocol):
    """A replica on a node. Any exception of a method means that it is lost."""

    node: str

    async def poll(self, seen: int) -> bytes:
        """See `ReplicaHost.poll`."""

    async def stop(self, grace_s: float) -> None:
        """See `ReplicaHost.stop`."""

    def remove(self) -> None:
        """End its process if it runs, and free its place."""


class ReplicaPlacer(Protocol):
    """Places replicas on nodes. Raises, from all methods: `ClusterError`."""

    async def connect(self) -> None:
        """Connect to the cluster."""

    async def place(self, needs: ReplicaNeeds, settings: str) -> PlacedReplica:
        """A started replica on a node that has what it `needs`; waits for one.

        Cancelling gives the place up.
        """


class ReplicaBridge:
    """Serves clients over `placer`."""

    def __init__(self, placer: ReplicaPlacer) -> None:
        self._placer = placer
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, socket: str) -> asyncio.Server:
        """Listen at `socket`, whose folder is the user's alone."""
        return await asyncio.start_unix_server(self._client, socket)

    async def aclose(self) -> None:
        """End all replicas."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replicas: dict[int, _BridgedReplica] = {}
        try:
            while (message := await read_frame(reader)) is not None:
                self._handle(replicas, writer, message[0])
        except (ClusterError, KeyError, TypeError, ValueError):
            _logger.exception("the bridge drops a client that sends nonsense")
        finally:
            for replica in replicas.values():
                replica.task.cancel()
            writer.close()

    def _handle(
        self,
        replicas: dict[int, _BridgedReplica],
        writer: asyncio.StreamWriter,
        header: Mapping[str, Any],
    ) -> None:
        number = int(header["replica"])
        match header["kind"]:
            case "place":
                labels = tuple(map(str, header["labels"]))
                needs = ReplicaNeeds(int(header["ranks"]), str(header["device"]), labels)
                replica = _BridgedReplica(number, writer)
                work = replica.run(self._placer, needs, str(header["settings"]))
                task = replica.task = asyncio.ensure_future(work)
                replicas[number] = replica
                self._open.add(task)
                task.add_done_callback(self._open.discard)
                task.add_done_callback(replica.gone)
            case "stop":
                if number in replicas:
                    replicas[number].stop(float(header["grace_s"]))
            case kind:
                raise ClusterError(f"the bridge knows no {kind!r}")


class _BridgedReplica:
    """One replica of one client, from its placement to its end."""

    task: asyncio.Task[None]

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self._number = number
        self._writer = writer
        self._placed: PlacedReplica | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, placer: ReplicaPlacer, needs: ReplicaNeeds, settings: str) -> None:
        """Place it, and tell its states until it has ended or is lost."""
        try:
            self._placed = await placer.place(needs, settings)
            await self._follow(self._placed)
        except asyncio.CancelledError:
            await self._end()
        except Exception as error:  # noqa: BLE001 - whatever Ray raises: it is lost
            self._tell("lost", error=error_data(convert(error)))
        finally:
            if self._stopping is not None:
                self._stopping.cancel()
            if self._placed is not None:
                self._placed.remove()

    def stop(self, grace_s: float) -> None:
        """End it, as its host does; give its place up where it has none yet."""
        if self._placed is None:
            self.task.cancel()
        elif self._stopping is None or not grace_s:
            self._stopping = asyncio.ensure_future(self._placed.stop(grace_s))
            self._stopping.add_done_callback(_ignored)

    def gone(self, _: asyncio.Task[None]) -> None:
        """Tell that nothing more is told: it may have been cancelled before it began."""
        self._tell("gone")

    async def _follow(self, placed: PlacedReplica) -> None:
        seen, is_over = -1, False
        while not is_over:
            async with asyncio.timeout(_SILENCE_S):
                ((state, _),) = frames(await placed.poll(seen))
            if state["version"] != seen:
                seen, is_over = state["version"], bool(state["ended"])
                self._tell("state", state=state, node=placed.node)

    async def _end(self) -> None:
        """End it at once, by its own supervisor, so that nothing of the server is left."""
        with suppress(Exception):
            async with asyncio.timeout(_END_S):
                if self._placed is not None:
                    await self._placed.stop(0.0)
                    await self._follow(self._placed)

    def _tell(self, kind: str, **fields: Any) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame({"kind": kind, "replica": self._number, **fields}))


def _ignored(task: asyncio.Task[None]) -> None:
    """The failure of a `stop` is the loss of the replica, which its poll tells."""
    if not task.cancelled():
        task.exception()
