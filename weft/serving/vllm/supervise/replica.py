"""One replica over all its processes: restarts it after a crash, at the same address.

Has no access to the registry and to other replicas.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from weft.core.errors import ServeError, StartError
from weft.core.hosts import reachable
from weft.serving.vllm.launch.ports import HeldPort
from weft.serving.vllm.supervise.log import LogFile
from weft.serving.vllm.supervise.registry import ReplicaEntry
from weft.serving.vllm.supervise.replica_process import ReplicaProcess, ReplicaSpec

_PORTS_TRIED = 3


class SupervisedReplica:
    """One replica. `changed` receives each new state, `show` messages for the user."""

    def __init__(
        self,
        spec: ReplicaSpec,
        log: LogFile,
        changed: Callable[[ReplicaEntry], None],
        show: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._log = log
        self._changed = changed
        self._show = show
        self._restarts = spec.health.restarts()
        self._ending = asyncio.Event()
        self._process: ReplicaProcess | None = None
        host, port = spec.spec.host, spec.spec.port
        self._port = HeldPort(host, port + spec.number if port else 0)
        self.state = ReplicaEntry(spec.number, self._url(), str(log.path))

    async def run(self) -> None:
        """Serve until `stop` or `kill`. When this returns or raises, no process is left.

        Raises: `StartError` when the replica does not start, or crashes too often.
        """
        try:
            reason = await self._first_start()
            while not self._ending.is_set():
                self._show(f"it {reason}")
                reason = await self._restart()
            self._set_state(replace(self.state, status="stopped", engine=None))
        except ServeError:
            self._set_state(replace(self.state, status="failed", engine=None))
            raise
        finally:
            self._log.close()
            self._port.close()

    def stop(self, grace_s: float) -> None:
        """End the replica; requests in flight have `grace_s` to finish."""
        self._ending.set()
        if self._process is not None:
            self._process.stop(grace_s)

    def kill(self) -> None:
        """End the replica now."""
        self._ending.set()
        if self._process is not None:
            self._process.kill()

    async def _first_start(self) -> str:
        for left in reversed(range(_PORTS_TRIED)):
            self._port.hold()
            self._set_state(replace(self.state, url=self._url()))
            try:
                return await self._run_once()
            except StartError:
                if self._spec.spec.port or not left or not self._port.taken():
                    raise
            self._show(f"somebody took port {self._port.port}: trying another")
        raise AssertionError("the last try returns or raises")

    async def _restart(self) -> str:
        """Wait, and run one more process; why it ended. Raises: `StartError` to give up."""
        wait_s = self._restarts.after(time.monotonic())
        if wait_s is None:
            raise self._too_many_crashes()
        restarts = self.state.restarts + 1
        self._set_state(replace(self.state, status="restarting", engine=None, restarts=restarts))
        self._show(f"starts again in {wait_s:g} s")
        try:
            async with asyncio.timeout(wait_s):
                await self._ending.wait()
            return "stopped"
        except TimeoutError:
            pass
        try:
            return await self._run_once()
        except StartError as error:
            return f"did not come up: {error.message}"

    async def _run_once(self) -> str:
        if self._ending.is_set():
            return "stopped"
        process = ReplicaProcess(self._spec, self._port.port, self._log, self._show, self._on_ready)
        self._process = process
        try:
            return await process.run()
        finally:
            self._process = None

    def _on_ready(self, engine: int | None) -> None:
        self._set_state(replace(self.state, status="ready", engine=engine))
        self._show("ready")

    def _set_state(self, state: ReplicaEntry) -> None:
        self.state = state
        self._changed(state)

    def _url(self) -> str:
        if self._spec.spec.headless:
            return ""
        return f"http://{reachable(self._port.host)}:{self._port.port}/v1"

    def _too_many_crashes(self) -> StartError:
        policy = self._restarts
        return StartError(
            f"replica {self._spec.number} of {self._spec.spec.name} crashed {policy.most + 1} "
            f"times within {policy.window_s / 60:g} min and is given up",
            stage_reached="restart",
            hint=f"its log: {self._log.path}",
        )
