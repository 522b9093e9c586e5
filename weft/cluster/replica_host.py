"""One replica on its node: the object in the actor, which supervises a server's process there.

Knows nothing of Ray. It has an event loop in a thread of its own. States leave it as frames; the
server's key is the node's own variable and never leaves.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeVar

from weft.cluster.frames import frame
from weft.cluster.host import HEARTBEAT_S, error_data
from weft.core.errors import convert
from weft.serving.vllm.launch.command import Maker, maker, resolve_spec
from weft.serving.vllm.launch.spec import ServeSpec, from_form
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.log import LogFile
from weft.serving.vllm.supervise.processes import Identity, Mark, end_leftovers
from weft.serving.vllm.supervise.registry import ReplicaEntry
from weft.serving.vllm.supervise.replica import SupervisedReplica
from weft.serving.vllm.supervise.replica_process import HealthPolicy, ReplicaSpec
from weft.serving.vllm.supervise.state_folders import log_folder, prune_logs

T = TypeVar("T")


class ReplicaHost:
    """A supervised server. `start` it once; `poll` its state until that says `ended`.

    `settings`: JSON with the `spec` in its form, and with `drain_s` and `start_timeout_s`.
    """

    def __init__(self, settings: str) -> None:
        given = json.loads(settings)
        self._spec = from_form(given["spec"])
        self._drain_s = float(given["drain_s"])
        self._health = self.health(float(given["start_timeout_s"]))
        self._replica: SupervisedReplica | None = None
        self._ending = False
        self._state: dict[str, Any] = {"version": 0, "ended": False}
        self._news = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="weft replica", daemon=True).start()

    async def start(self, address: str) -> None:
        """Start to serve at `address`, which is this node's. Does not wait."""
        self._in_loop(self._run(address))

    async def poll(self, seen: int) -> bytes:
        """A frame with the state once its version is beyond `seen`, else after a heartbeat."""
        return await asyncio.wrap_future(self._in_loop(self._poll(seen)))

    async def stop(self, grace_s: float) -> None:
        """End the server; requests in flight have `grace_s` to finish."""
        await asyncio.wrap_future(self._in_loop(self._stop(grace_s)))

    def maker(self, spec: ServeSpec) -> Maker:
        """What makes the command of the server. Raises: as `maker`."""
        return maker(spec, self._drain_s)

    def health(self, start_timeout_s: float) -> HealthPolicy:
        """How it is watched and restarted: as by `weft serve`."""
        return HealthPolicy(start_timeout_s=start_timeout_s)

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _run(self, address: str) -> None:
        error: dict[str, Any] | None = None
        try:
            await self._serve(address)
        except Exception as raised:  # noqa: BLE001 - told to the client, as data
            error = error_data(convert(raised))
        self._change(ended=True, error=error)

    async def _serve(self, address: str) -> None:
        await asyncio.to_thread(end_leftovers)
        prune_logs()
        spec = resolve_spec(replace(self._spec, host=address, replicas=1))
        make = await asyncio.to_thread(self.maker, spec)
        serving = registry.new_id(spec.name)
        mark = Mark(serving, Identity.own())
        log = LogFile(log_folder(serving) / "0.log")
        one = ReplicaSpec(spec, 0, mark, lambda port: make(port, 0), self._health)
        self._replica = SupervisedReplica(one, log, self._changed, self._show)
        if self._ending:  # stopped before there was a replica
            self._replica.kill()
        await self._replica.run()

    async def _stop(self, grace_s: float) -> None:
        self._ending = True
        if self._replica is not None:
            if grace_s > 0:
                self._replica.stop(grace_s + self._health.teardown_s)
            else:
                self._replica.kill()

    async def _poll(self, seen: int) -> bytes:
        if self._state["version"] <= seen:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), HEARTBEAT_S)
        return frame(self._state)

    def _changed(self, entry: ReplicaEntry) -> None:
        self._change(entry=asdict(entry))

    def _show(self, text: str) -> None:
        self._change(stage=text)

    def _change(self, **fields: Any) -> None:
        self._state = {**self._state, **fields, "version": self._state["version"] + 1}
        self._news.set()
