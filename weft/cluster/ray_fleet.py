"""`use: vllm` with `on: ray`: a fleet that has its replicas placed on a cluster, by its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from weft.cluster.replicas import RayReplicas
from weft.core.ports.model import ModelClient
from weft.serving.fleet import FleetOptions, FollowingFleet, ScalingOptions, autoscale


class RayFleet(FollowingFleet):
    """A fleet of `replicas`, which it owns: as many as `scaling` says, from its first use on.

    Calls wait for `start_timeout_s` of the replicas at least, as each loads its weights first.
    """

    def __init__(
        self,
        replicas: RayReplicas,
        scaling: ScalingOptions,
        options: FleetOptions,
        client: Callable[[str], ModelClient],
    ) -> None:
        outage_s = max(options.outage_s, replicas.start_timeout_s)
        super().__init__(replicas.model, replicas, client, replace(options, outage_s=outage_s))
        self._pool = replicas
        self._bounds = scaling
        self._growing: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        if self._growing is not None:
            self._growing.cancel()
            with suppress(asyncio.CancelledError):
                await self._growing
        await super().aclose()
        await self._pool.aclose()

    def _check_open(self) -> None:
        super()._check_open()
        if self._growing is None:
            self._growing = asyncio.create_task(autoscale(self, self._pool, self._bounds))
