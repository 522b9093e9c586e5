"""One replica on a cluster, wherever it is: placed, watched, and placed again when it is lost.

Its process is supervised on its node. This is the other half: the loss of the node, the actor or
the bridge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import count
from typing import Any

from weft.cluster.frames import Header
from weft.cluster.host import error_of
from weft.cluster.link import Connect, Link
from weft.core.errors import ClusterError, StartError, WeftError
from weft.core.ports.clock import Clock
from weft.serving.vllm.supervise.registry import ReplicaEntry
from weft.serving.vllm.supervise.replica_process import RestartPolicy


class ReplicaChannel:
    """The way to the bridge for all replicas of a deployment; opened again after it was lost."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._opening = asyncio.Lock()
        self._link: Link | None = None
        self._numbers = count()
        self._news: dict[int, asyncio.Queue[Header]] = {}

    async def place(self, request: Header) -> tuple[int, asyncio.Queue[Header]]:
        """Ask for a replica: the number of its place, and what becomes of it.

        Raises: `ClusterError`.
        """
        async with self._opening:
            if self._link is None:
                self._link = await self._connect(self._received, self._ended)
            number = next(self._numbers)
            news = self._news[number] = asyncio.Queue()
            self._link.send({"kind": "place", "replica": number, **request})
            return number, news

    def stop(self, place: int, grace_s: float) -> None:
        """End the replica at that place; its requests have `grace_s` to finish."""
        if self._link is not None:
            self._link.send({"kind": "stop", "replica": place, "grace_s": grace_s})

    def forget(self, place: int) -> None:
        """The caller reads no more of what becomes of that place."""
        self._news.pop(place, None)

    async def aclose(self) -> None:
        """Close the way; all replicas end."""
        async with self._opening:
            if self._link is not None:
                await self._link.aclose()
                self._link = None

    def _received(self, header: Header, _: bytes) -> None:
        if (news := self._news.get(int(header["replica"]))) is not None:
            news.put_nowait(header)

    def _ended(self) -> None:
        self._link = None
        for news in self._news.values():
            news.put_nowait({"kind": "lost"})


class ClusterReplica:
    """One replica. `changed` receives each new state, `show` messages for the user.

    `request`: what is sent to place it.
    """

    def __init__(
        self,
        number: int,
        channel: ReplicaChannel,
        request: Header,
        changed: Callable[[ReplicaEntry], None],
        show: Callable[[str], None],
        *,
        clock: Clock,
        restarts: RestartPolicy,
    ) -> None:
        self._channel = channel
        self._request = request
        self._changed = changed
        self._show = show
        self._clock = clock
        self._restarts = restarts
        self._ending = asyncio.Event()
        self._place: int | None = None
        self._stage = ""
        self._losses = 0
        self.state = ReplicaEntry(number, "", "")

    async def run(self) -> None:
        """Have it served until `stop` or `kill`. No process of it is left on a node that lives.

        Raises: `StartError` when it does not start or is lost too often; the error of its node,
        such as `SpecError` or `ModelNotFound`; `ClusterError` without a cluster.
        """
        try:
            while not self._ending.is_set():
                lost = await self._placement()
                if lost and not self._ending.is_set():
                    await self._pause(lost)
        except WeftError:
            self._set(status="failed", engine=None)
            raise
        self._set(status="stopped", engine=None)

    def stop(self, grace_s: float) -> None:
        """End it; requests in flight have `grace_s` to finish."""
        self._ending.set()
        if self._place is not None:
            self._channel.stop(self._place, grace_s)

    def kill(self) -> None:
        """End it now."""
        self.stop(0.0)

    async def _placement(self) -> str:
        """One life on a node. Why it was lost; empty when it was stopped."""
        self._show("waits for a place on the cluster")
        try:
            self._place, news = await self._channel.place(self._request)
        except ClusterError as error:
            if not error.retryable:
                raise
            return error.message
        if self._ending.is_set():  # stopped while the bridge was started
            self._channel.stop(self._place, 0.0)
        try:
            return await self._life(news)
        finally:
            self._channel.forget(self._place)
            self._place = None

    async def _life(self, news: asyncio.Queue[Header]) -> str:
        while True:
            told = await news.get()
            if told["kind"] == "lost":
                error = told.get("error")
                return error_of(error).message if error else "the bridge to the cluster is gone"
            if told["kind"] == "gone":
                return ""
            state = told["state"]
            if state["ended"]:
                if state.get("error"):
                    raise error_of(state["error"])
                return "" if self._ending.is_set() else "its process ended"
            self._take(state, str(told["node"]))

    def _take(self, state: Mapping[str, Any], node: str) -> None:
        stage = str(state.get("stage", ""))
        if stage and stage != self._stage:
            self._stage = stage
            self._show(f"{node}: {stage}")
        if (entry := state.get("entry")) is not None:
            there = ReplicaEntry(
                **{field.name: entry[field.name] for field in fields(ReplicaEntry)}
            )
            self._set(
                status=there.status,
                url=there.url,
                log=f"{node}:{there.log}",
                restarts=self._losses + there.restarts,
                engine=there.engine,
            )

    async def _pause(self, lost: str) -> None:
        """Wait before it is placed again. Raises: `StartError` to give up."""
        self._losses = self.state.restarts + 1
        self._set(status="restarting", url="", engine=None, restarts=self._losses)
        wait_s = self._restarts.after(self._clock.now())
        if wait_s is None:
            policy = self._restarts
            raise StartError(
                f"replica {self.state.number} was lost {policy.most + 1} times within "
                f"{policy.window_s / 60:g} min and is given up; at last: {lost}",
                stage_reached="restart",
                hint="`weft cluster status` shows the nodes",
            )
        self._show(f"is lost: {lost}; it is placed again in {wait_s:g} s")
        waits = [
            asyncio.ensure_future(self._clock.sleep(wait_s)),
            asyncio.ensure_future(self._ending.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _set(self, **changes: Any) -> None:
        state = replace(self.state, **changes)
        if state != self.state:
            self.state = state
            self._changed(state)
