"""The workers of one pool and one package of code: who gets a batch, and who is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.cluster.frames import frame, frames
from weft.cluster.host import error_data
from weft.cluster.settings import no_node, start_hint
from weft.cluster.workers import ToolWorker, Workers
from weft.core.errors import ClusterError, WeftError

LEASE_S: Final = 3.0
"""How long a worker may begin a call that must not be repeated, from when it was sent."""
_REFRESH_S: Final = 1.0
_WAIT_FOR_NODES_S: Final = 30.0
Tell = Callable[[str, Mapping[str, Any], bytes], None]
"""Sends a frame to the client of that name."""


@dataclass(eq=False)
class _Member:
    """A worker with its open calls, by client. `clock`: of the worker, and of here at that time."""

    worker: ToolWorker
    clock: tuple[float, float]
    open: dict[int, str] = field(default_factory=dict)
    polling: asyncio.Task[None] | None = None
    is_lost: bool = False

    def act_before(self, now: float) -> float:
        """The end of a lease that begins now, on the worker's clock; early rather than late."""
        theirs, ours = self.clock
        return theirs + (now - ours) + LEASE_S


class WorkerPool:
    """Spreads batches over `count` workers on every node with `labels`, and replaces lost ones.

    A worker is lost when a call of it fails, or when it gives no sign for `silence_s`. Its process
    is killed, and the clients are told which of their calls were with it.
    """

    def __init__(
        self,
        workers: Workers,
        labels: tuple[str, ...],
        count: int,
        settings: Mapping[str, Any],
        silence_s: float,
        tell: Tell,
    ) -> None:
        self._workers = workers
        self._labels = labels
        self._count = count
        self._settings = settings
        self._silence_s = silence_s
        self._tell = tell
        self._members: list[_Member] = []
        self._starting: list[str] = []
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = -_REFRESH_S
        self._tasks: set[asyncio.Task[Any]] = set()
        self.used_at = time.monotonic()

    @property
    def size(self) -> int:
        """How many workers there are."""
        return len(self._members)

    @property
    def idle(self) -> bool:
        """Whether no call is open."""
        return not any(member.open for member in self._members)

    async def fill(self) -> None:
        """Wait until there is a worker. Raises: `WeftError`."""
        self.used_at = time.monotonic()
        try:
            await self._member()
        except Exception as error:  # noqa: BLE001 - whatever Ray raises
            raise (error if isinstance(error, WeftError) else _unusable(error)) from None

    async def submit(self, client: str, calls: list[int], body: bytes, *, once: bool) -> None:
        """Send calls to the worker with the fewest open ones; tells the client how they end."""
        self.used_at = time.monotonic()
        try:
            await self.fill()
            member = await self._member()
        except WeftError as error:
            header = {"kind": "unsent", "calls": calls, "error": error_data(error)}
            self._tell(client, header, b"")
            return
        sent: dict[str, Any] = {"client": client}
        if once:
            sent["act_before"] = member.act_before(time.monotonic())
        member.open.update(dict.fromkeys(calls, client))
        try:
            reply = await asyncio.wait_for(member.worker.submit(frame(sent, body)), self._silence_s)
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker is lost
            self._lose(member, error)
            return
        self._received(member, reply)
        if member.open and member.polling is None and not member.is_lost:
            member.polling = self._keep(self._poll(member))

    async def cancel(self, calls: list[int]) -> None:
        """Cancel calls where they run."""
        wanted = set(calls)
        for member in list(self._members):
            here = [call for call in member.open if call in wanted]
            if here:
                self._keep(self._cancel(member, here))

    def forget(self, client: str) -> None:
        """Cancel all calls of a client that is gone."""
        for member in self._members:
            here = [call for call, owner in member.open.items() if owner == client]
            if here:
                self._keep(self._cancel(member, here))

    def close(self) -> None:
        """End all workers."""
        for member in self._members:
            member.is_lost = True
            member.worker.kill()
        self._members.clear()
        for task in self._tasks:
            task.cancel()

    async def _cancel(self, member: _Member, calls: list[int]) -> None:
        try:
            await asyncio.wait_for(member.worker.cancel(calls), self._silence_s)
        except Exception as error:  # noqa: BLE001 - as in `submit`
            self._lose(member, error)

    async def _poll(self, member: _Member) -> None:
        """Ask for news while calls are open. Each reply is a sign of life."""
        try:
            while member.open and not member.is_lost:
                reply = await asyncio.wait_for(member.worker.poll(), self._silence_s)
                self._received(member, reply)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - as in `submit`
            self._lose(member, error)
        finally:
            member.polling = None

    def _received(self, member: _Member, reply: bytes) -> None:
        if member.is_lost:  # the clients know the calls as lost
            return
        try:
            for header, body in frames(reply):
                member.clock = float(header["clock"]), time.monotonic()
                if header["kind"] == "alive":
                    continue
                for call in header["ended"]:
                    member.open.pop(call, None)
                self._tell(str(header["client"]), {**header, "workers": self.size}, body)
        except (WeftError, KeyError, TypeError, ValueError) as error:
            self._lose(member, error)

    def _lose(self, member: _Member, error: Exception) -> None:
        if member.is_lost:
            return
        member.is_lost = True
        if member in self._members:
            self._members.remove(member)
        member.worker.kill()
        clients: dict[str, list[int]] = {}
        for call, client in member.open.items():
            clients.setdefault(client, []).append(call)
        why = "it gave no sign" if isinstance(error, TimeoutError) else type(error).__name__
        why = f"a worker on {member.worker.name} was lost: {why}"
        for client, calls in clients.items():
            self._tell(client, {"kind": "lost", "calls": calls, "why": why}, b"")
        member.open.clear()
        self._refreshed_at = -_REFRESH_S

    async def _member(self) -> _Member:
        """The worker with the fewest open calls. Raises: `ClusterError` when there is none."""
        deadline = time.monotonic() + _WAIT_FOR_NODES_S
        while True:
            if not self._members:
                await self._refresh()
            elif time.monotonic() - self._refreshed_at > _REFRESH_S:
                self._keep(self._refresh())
            if self._members:
                return min(self._members, key=lambda member: len(member.open))
            if time.monotonic() > deadline:
                missing = await absent(self._workers, self._labels)
                raise ClusterError(no_node(missing), hint=start_hint(missing))
            await asyncio.sleep(_REFRESH_S)

    async def _refresh(self) -> None:
        """Start workers where some are missing; one refresh at a time."""
        if self._refreshing is None:
            self._refreshing = self._keep(self._filled())
            self._refreshing.add_done_callback(lambda _: setattr(self, "_refreshing", None))
        await asyncio.shield(self._refreshing)

    async def _filled(self) -> None:
        self._refreshed_at = time.monotonic()
        nodes = await asyncio.wait_for(self._workers.nodes(self._labels), self._silence_s)
        have = [member.worker.node for member in self._members] + self._starting
        missing = [node for node in nodes for _ in range(self._count - have.count(node))]
        made = [self._keep(self._started(node)) for node in missing]
        if not made:
            return
        if self._members:  # work goes on with those that are there
            return
        done, _ = await asyncio.wait(made, return_when=asyncio.FIRST_COMPLETED)
        others = [task for task in made if task not in done]
        if others:  # the first batches are to be spread over all of them
            more, _ = await asyncio.wait(others, timeout=self._silence_s)
            done |= more
        errors = [error for task in done if (error := task.exception()) is not None]
        if errors and not self._members and await self._any_is_there(set(missing)):
            raise errors[0]

    async def _any_is_there(self, nodes: set[str]) -> bool:
        """Whether one of `nodes` lives; others may take the place of dead ones."""
        found = await asyncio.wait_for(self._workers.nodes(self._labels), self._silence_s)
        return not nodes.isdisjoint(found)

    async def _started(self, node: str) -> None:
        self._starting.append(node)
        try:
            worker = await self._workers.start(node, self._settings)
            clock = await asyncio.wait_for(worker.clock(), self._silence_s)
        finally:
            self._starting.remove(node)
        self._members.append(_Member(worker, (clock, time.monotonic())))

    def _keep(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._dropped)
        return task

    def _dropped(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: who waits for it has it


async def absent(workers: Workers, labels: Sequence[str]) -> list[str]:
    """Those of `labels` that no node has; all of them where no node has all."""
    if not labels or await workers.nodes(tuple(labels)):
        return []
    return [each for each in labels if not await workers.nodes((each,))] or list(labels)


def _unusable(error: Exception) -> ClusterError:
    return ClusterError(f"the cluster gives no worker: {type(error).__name__}: {error}"[:500])
