"""Supervises one serving: its replicas, its registry entry, and its end.

Runs in the foreground of `weft serve`, or detached. Independent of vLLM's flags and log lines.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Protocol

from weft.core.errors import ClusterError, ServeError, WeftError
from weft.serving.vllm.launch.command import Maker
from weft.serving.vllm.supervise import failure, registry
from weft.serving.vllm.supervise.leases import holders
from weft.serving.vllm.supervise.log import LogFile
from weft.serving.vllm.supervise.processes import Identity, Mark, end_leftovers
from weft.serving.vllm.supervise.registry import ReplicaEntry, ServingEntry
from weft.serving.vllm.supervise.replica import SupervisedReplica
from weft.serving.vllm.supervise.replica_process import HealthPolicy, ReplicaSpec
from weft.serving.vllm.supervise.state_folders import log_folder, prune_logs

Show = Callable[[str], None]
_LEASE_POLL_S = 0.5
_LEASE_GRACE_S = 2.0


class Replica(Protocol):
    """One replica of a serving, wherever it runs: `SupervisedReplica` on this machine."""

    state: ReplicaEntry

    async def run(self) -> None:
        """Serve until it is to end. Raises: `ServeError`, `ClusterError`."""

    def stop(self, grace_s: float) -> None:
        """End it; requests in flight have `grace_s` to finish."""

    def kill(self) -> None:
        """End it now."""


MakeReplica = Callable[[int, Callable[[ReplicaEntry], None], Show], Replica]
"""A replica from its number, what receives its states, and what receives lines for the user."""


class ServerSupervisor:
    """One serving. `show` receives lines for the user, `ready` the entry once all replicas are up.

    `make` gives the command of each replica on this machine; `elsewhere` replicas on others.

    SIGINT, SIGTERM and SIGHUP end it in order, a second one at once. SIGQUIT ends it at once.
    """

    def __init__(
        self,
        entry: ServingEntry,
        make: Maker | None = None,
        *,
        elsewhere: MakeReplica | None = None,
        show: Show,
        ready: Callable[[ServingEntry], None] | None = None,
        health: HealthPolicy | None = None,
    ) -> None:
        assert (make is None) != (elsewhere is None)
        self._entry = replace(entry, supervisor=Identity.own())
        self._make = make
        self._elsewhere = elsewhere
        self._show_line = show
        self._ready = ready
        self._health = health or HealthPolicy()
        self._was_ready = False
        self._ending = False
        self._replicas: list[Replica] = []

    async def run(self) -> bool:
        """Serve until stopped; true if it ever was ready. No process is left when this returns.

        Raises: `StartError` when a replica does not start, or when the last one is given up.
        """
        with self._signals():
            end_leftovers()
            prune_logs()
            self._save()
            try:
                self._replicas = [
                    self._replica(number) for number in range(self._entry.spec.replicas)
                ]
                async with asyncio.TaskGroup() as group:
                    keepers = [group.create_task(self._keep(r)) for r in self._replicas]
                    watch = group.create_task(self._watch_leases())
                    await asyncio.wait(keepers)
                    watch.cancel()
            except (WeftError, ExceptionGroup) as raised:
                error = _first(raised)
                if isinstance(error, WeftError):
                    failure.write(self._entry.id, error)
                raise error from None
            finally:
                with registry.locked():
                    registry.remove(self._entry.id)
        return self._was_ready

    def stop(self) -> None:
        """End everything in order; at once when repeated."""
        if self._ending:
            self.kill()
            return
        self._ending = True
        drain_s = self._entry.drain_s
        for replica in self._replicas:
            replica.stop(drain_s + self._health.teardown_s)
        self._change(replace(self._entry, status="stopping", stage="stopping"))
        self._show(f"stopping; requests in flight have {drain_s:g} s to finish")

    def kill(self) -> None:
        """End everything now."""
        self._ending = True
        for replica in self._replicas:
            replica.kill()
        self._change(replace(self._entry, status="stopping", stage="stopping"))

    def _replica(self, number: int) -> Replica:
        prefix = f"replica {number}: " if self._entry.spec.replicas > 1 else ""

        def show(text: str) -> None:
            self._report(prefix + text)

        make = self._elsewhere or self._here
        replica = make(number, self._changed, show)
        self._entry = self._entry.with_replica(replica.state)
        return replica

    def _here(
        self, number: int, changed: Callable[[ReplicaEntry], None], show: Show
    ) -> SupervisedReplica:
        make, entry = self._make, self._entry
        assert make is not None
        health = replace(self._health, start_timeout_s=entry.start_timeout_s)
        mark = Mark(entry.id, entry.supervisor)
        spec = ReplicaSpec(entry.spec, number, mark, lambda port: make(port, number), health)
        return SupervisedReplica(
            spec, LogFile(log_folder(entry.id) / f"{number}.log"), changed, show
        )

    async def _keep(self, replica: Replica) -> None:
        """Run one replica to its end. A later failure of one leaves the others serving."""
        if self._ending:  # stopped before there was a replica
            replica.kill()
        try:
            await replica.run()
        except (ServeError, ClusterError) as error:
            others = any(r.state.status in ("ready", "restarting") for r in self._replicas)
            if not (replica.state.restarts and others) and not self._ending:
                raise
            self._show(str(error))

    async def _watch_leases(self) -> None:
        """End the serving when no program has needed it for long enough."""
        keep_alive_s = self._entry.keep_alive_s
        if keep_alive_s is None:
            return
        idle_s = 0.0
        while idle_s < keep_alive_s + _LEASE_GRACE_S or not await self._abandoned():
            await asyncio.sleep(_LEASE_POLL_S)
            idle_s = 0.0 if holders(self._entry.id) else idle_s + _LEASE_POLL_S
        self.stop()

    async def _abandoned(self) -> bool:
        """Whether no program has a lease. Then the entry is stopping, so that none can take one."""
        try:
            async with registry.locked_meanwhile():
                if holders(self._entry.id):
                    return False
                registry.write(replace(self._entry, status="stopping", stage="nobody needs it"))
        except ServeError as error:
            self._show(str(error))
            return False
        return True

    def _changed(self, state: ReplicaEntry) -> None:
        self._change(self._entry.with_replica(state))
        if self._entry.status == "ready" and not self._was_ready:
            self._was_ready = True
            if self._ready is not None:
                with suppress(OSError):
                    self._ready(self._entry)

    def _show(self, text: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            self._show_line(text)

    def _report(self, text: str) -> None:
        self._show(text)
        if self._entry.status == "starting":
            self._change(replace(self._entry, stage=text))

    def _change(self, entry: ServingEntry) -> None:
        if entry != self._entry:
            self._entry = entry
            self._save()

    def _save(self) -> None:
        try:
            with registry.locked():
                registry.write(self._entry)
        except ServeError as error:  # a full disk must not end a server that works
            self._show(str(error))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals, except those ignored now, as `nohup` requires."""
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGINT: self.stop,
            signal.SIGTERM: self.stop,
            signal.SIGHUP: self.stop,
            signal.SIGQUIT: self.kill,
        }
        before = {number: signal.getsignal(number) for number in handlers}
        for number, handle in handlers.items():
            if before[number] is not signal.SIG_IGN:
                loop.add_signal_handler(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


def _first(raised: Exception) -> Exception:
    """The first of weft's own errors in a group, else the first error."""
    if not isinstance(raised, ExceptionGroup):
        return raised
    found = [_first(error) for error in raised.exceptions]
    return next((error for error in found if isinstance(error, WeftError)), found[0])
