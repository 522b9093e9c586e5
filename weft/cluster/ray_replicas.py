"""Replicas as actors of Ray, each in a placement group of its own; in the bridge's process.

Ray places an actor and tells its end. It restarts nothing: weft does, elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from weft.cluster.ray_workers import connect_driver
from weft.cluster.replica_bridge import PlacedReplica, ReplicaNeeds
from weft.cluster.replica_host import ReplicaHost
from weft.core.errors import ClusterError

_START_S: Final = 120.0
_CONCURRENT: Final = 16


class RayReplica:
    """Implements `PlacedReplica` with an actor and its placement group."""

    def __init__(self, node: str, actor: Any, group: Any) -> None:
        self.node = node
        self._actor = actor
        self._group = group

    async def poll(self, seen: int) -> bytes:
        found = await self._actor.poll.remote(seen)
        if not isinstance(found, bytes):
            raise ClusterError("a replica replied with something else than bytes")
        return found

    async def stop(self, grace_s: float) -> None:
        await self._actor.stop.remote(grace_s)

    def remove(self) -> None:
        import ray
        from ray.util import remove_placement_group

        with suppress(Exception):  # it is dead already
            ray.kill(self._actor, no_restart=True)
        with suppress(Exception):
            remove_placement_group(self._group)


class RayPlacer:
    """Implements `ReplicaPlacer` in the cluster at `address`, as a driver of it."""

    host: type[ReplicaHost] = ReplicaHost

    def __init__(self, address: str) -> None:
        self._address = address

    async def connect(self) -> None:
        await connect_driver(self._address)

    async def place(self, needs: ReplicaNeeds, settings: str) -> PlacedReplica:
        import ray
        from ray.util import placement_group, remove_placement_group

        resources = await asyncio.to_thread(ray.cluster_resources)
        bundle = needs.bundle(gpus=bool(resources.get("GPU")))
        group = placement_group([bundle], strategy="STRICT_PACK")
        try:
            await group.ready()
            return await self._start(bundle, settings, group)
        except BaseException:
            with suppress(Exception):
                remove_placement_group(group)  # ends an actor in it, too
            raise

    async def _start(self, bundle: Mapping[str, float], settings: str, group: Any) -> RayReplica:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        remote: Callable[..., Any] = ray.remote
        actor = (
            remote(self.host)
            .options(
                num_cpus=bundle.get("CPU", 0),
                num_gpus=bundle.get("GPU", 0),
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=_CONCURRENT,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=0
                ),
            )
            .remote(settings)
        )
        address = await asyncio.to_thread(_address_of, group)
        async with asyncio.timeout(_START_S):
            await actor.start.remote(address)
        return RayReplica(address, actor, group)


def _address_of(group: Any) -> str:
    """The address of the node on which `group` is. Raises: `ClusterError`."""
    import ray
    from ray.util import placement_group_table

    node = placement_group_table(group)["bundles_to_node_id"][0]
    listed: Callable[[], list[dict[str, Any]]] = ray.nodes
    for each in listed():
        if each["NodeID"] == node:
            return str(each["NodeManagerAddress"])
    raise ClusterError("the node of a replica is gone")
