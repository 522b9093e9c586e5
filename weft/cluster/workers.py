"""Worker processes as the bridge sees them; `weft.cluster.ray_workers` has them on Ray."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from weft.cluster.code import ShippedCode
from weft.cluster.frames import frame
from weft.cluster.host import ToolHost, error_data
from weft.core.errors import PlacementError, convert
from weft.durability.content_address import open_content

T = TypeVar("T")


class ToolWorker(Protocol):
    """One worker process. Any exception of a method means that the process is lost.

    `node`: the id of its machine; `name`: what people call that.
    """

    node: str
    name: str

    async def submit(self, batch: bytes) -> bytes:
        """See `ToolHost.submit`."""

    async def poll(self) -> bytes:
        """See `ToolHost.poll`."""

    async def cancel(self, calls: list[int]) -> None:
        """See `ToolHost.cancel`."""

    async def clock(self) -> float:
        """The time on the worker's clock, in seconds."""

    def kill(self) -> None:
        """End the process, now."""


class Workers(Protocol):
    """Starts workers. Raises, from all methods: `ClusterError`."""

    async def connect(self) -> None:
        """Connect to the cluster."""

    async def nodes(self, labels: tuple[str, ...]) -> list[str]:
        """The nodes that are alive and have all `labels`."""

    async def start(self, node: str, settings: Mapping[str, Any]) -> ToolWorker:
        """A worker on `node`, ready. `settings`: those of `WorkerProcess`, by name."""


class WorkerProcess:
    """The object in a worker process: the actor of Ray. Everything in and out is bytes.

    `content`: the content store; `code`: the digest of the code in it, if any. `variables`: the
    names of environment variables that the client opens the store with; the worker has its own.
    Code that cannot be loaded makes `ready` return the error, and no call is made.
    """

    def __init__(self, content: str, code: str, variables: Sequence[str] = ()) -> None:
        self._content = content
        self._digest = code
        self._variables = variables
        self._host: ToolHost | None = None

    async def ready(self) -> bytes:
        """Load the code: a frame with the worker's `clock`, or with its `error`."""
        try:
            self._check_set()
            store = open_content(self._content)
            archive = await store.get(self._digest) if self._digest else b""
            self._host = ToolHost(ShippedCode(archive), store)
        except Exception as error:  # noqa: BLE001 - told to the client, as data
            return frame({"kind": "error", "error": error_data(convert(error))})
        return frame({"kind": "alive", "clock": self._host.clock()})

    async def submit(self, batch: bytes) -> bytes:
        """See `ToolHost.submit`."""
        return await wrapped(self._ready, self._ready.submit(batch))

    async def poll(self) -> bytes:
        """See `ToolHost.poll`."""
        return await wrapped(self._ready, self._ready.poll())

    async def cancel(self, calls: list[int]) -> None:
        """See `ToolHost.cancel`."""
        await wrapped(self._ready, self._ready.cancel(calls))

    async def clock(self) -> float:
        """See `ToolHost.clock`."""
        return self._ready.clock()

    def _check_set(self) -> None:
        """Raises: `PlacementError` for variables that the worker lacks."""
        missing = [name for name in self._variables if name not in os.environ]
        if missing:
            raise PlacementError(
                f"a worker has no {' and no '.join(missing)}, which its content store needs",
                hint="set it on each node: `weft cluster up --env NAME`, or a Secret in the "
                "manifest; only names travel",
            )

    @property
    def _ready(self) -> ToolHost:
        assert self._host is not None, "`ready` comes first"
        return self._host


async def wrapped(host: ToolHost, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, run in the loop of `host`."""
    return await asyncio.wrap_future(host.run(work))
