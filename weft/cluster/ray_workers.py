"""Workers as actors of Ray, in the bridge's process: only this and `ray_replicas` import it.

An actor reserves no processors, is never restarted by Ray, and none of its calls is repeated by
Ray: what is lost is told, and weft decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from weft.cluster.frames import frames
from weft.cluster.host import error_of
from weft.cluster.nodes import node_name
from weft.cluster.workers import ToolWorker, WorkerProcess
from weft.core.errors import ClusterError

_START_S: Final = 60.0
_CONCURRENT: Final = 1_000


class RayWorker:
    """Implements `ToolWorker` with one actor on one node."""

    def __init__(self, node: str, name: str, actor: Any) -> None:
        self.node = node
        self.name = name
        self._actor = actor

    async def submit(self, batch: bytes) -> bytes:
        return await _bytes(self._actor.submit.remote(batch))

    async def poll(self) -> bytes:
        return await _bytes(self._actor.poll.remote())

    async def cancel(self, calls: list[int]) -> None:
        await self._actor.cancel.remote(calls)

    async def clock(self) -> float:
        return float(await self._actor.clock.remote())

    def kill(self) -> None:
        import ray

        with suppress(Exception):  # it is dead already
            ray.kill(self._actor, no_restart=True)


async def _bytes(reference: Any) -> bytes:
    found = await reference
    if not isinstance(found, bytes):
        raise ClusterError("a worker replied with something else than bytes")
    return found


async def connect_driver(address: str) -> None:
    """Make this process a driver of the cluster at `address`. Raises: `ClusterError`."""
    try:
        await asyncio.to_thread(_connect, address)
    except Exception as error:
        raise ClusterError(
            f"the Ray cluster at {address} cannot be used: {str(error)[:400]}",
            hint="is it up (weft cluster status), is its token right, and is this machine a "
            "node of it?",
        ) from error


def _connect(address: str) -> None:
    import ray

    ray.init(
        address=address,
        log_to_driver=False,
        logging_level=logging.ERROR,
        configure_logging=False,
        namespace="weft",
    )


class RayWorkers:
    """Implements `Workers` in the cluster at `address`, as a driver of it.

    The token comes from Ray's own variables, which the bridge's parent sets. `lost` is called when
    the cluster knows the driver no longer: its node is dead, or there is another cluster. Ray would
    let it ask for workers for ever.
    """

    def __init__(self, address: str, lost: Callable[[], None]) -> None:
        self._address = address
        self._lost = lost
        self._node = ""
        self._actor: Any = None
        self._names: dict[str, str] = {}

    async def connect(self) -> None:
        import ray

        await connect_driver(self._address)
        self._node = str(ray.get_runtime_context().get_node_id())
        remote: Callable[..., Any] = ray.remote
        self._actor = remote(WorkerProcess)

    async def nodes(self, labels: tuple[str, ...]) -> list[str]:
        import ray

        found = await asyncio.to_thread(ray.nodes)
        alive = [each for each in found if each["Alive"]]
        addresses = {str(each["NodeID"]): str(each["NodeManagerAddress"]) for each in alive}
        if self._node not in addresses:
            self._lost()
        for node in addresses.keys() - self._names.keys():
            self._names[node] = node_name(self._address, addresses[node])
        wanted = labels or ("CPU",)
        fit = [each for each in alive if all(each["Resources"].get(name) for name in wanted)]
        if not fit and not labels:  # a cluster of a head alone
            fit = alive
        return sorted(str(each["NodeID"]) for each in fit)

    async def start(self, node: str, settings: Mapping[str, Any]) -> ToolWorker:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = self._names.get(node, node)
        actor = self._actor.options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_CONCURRENT,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(settings["content"], settings["code"], settings["variables"])
        worker = RayWorker(node, name, actor)
        try:
            async with asyncio.timeout(_START_S):
                ((header, _),) = frames(await _bytes(actor.ready.remote()))
        except BaseException as error:
            worker.kill()
            if isinstance(error, Exception):
                raise ClusterError(
                    f"no worker started on {name}: {type(error).__name__}: {str(error)[:300]}",
                    hint="is weft installed there, in the same version?",
                ) from error
            raise
        if header["kind"] == "error":
            worker.kill()
            raise error_of(header["error"])
        return worker
