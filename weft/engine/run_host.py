"""What the node functions of a run ask of it, by their contexts; see `Host` in `context`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from weft.core.errors import UnknownReference
from weft.core.events import Outcome
from weft.core.ids import NodeId, RunId, stem
from weft.core.ports import Program
from weft.core.values import Usage
from weft.engine.commands import CancelRequested, Command, Signal
from weft.engine.node import Node
from weft.engine.pace import Pace
from weft.engine.scheduler import Scheduler
from weft.engine.state import NodeState


class RunHost(ABC):
    """The part of a run that its node functions reach. Decides nothing: the scheduler does."""

    def __init__(
        self, run: RunId, flow: str, scheduler: Scheduler, services: object = None
    ) -> None:
        self.id = run
        self.services = services
        self._flow = flow
        self._scheduler = scheduler
        self._pace = Pace()
        self._waiters: dict[NodeId, list[asyncio.Future[Outcome]]] = {}

    @property
    @abstractmethod
    def elapsed_s(self) -> float:
        """Seconds since the run started."""

    @abstractmethod
    def _perform(self, commands: Sequence[Command]) -> None:
        """Carry out what the scheduler decided."""

    @abstractmethod
    def _signal(self, signal: Signal) -> None:
        """Have the scheduler told in the next turn."""

    def append(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        """Add nodes to a node that is running, all of them at once."""
        self._perform(self._scheduler.append(parent, nodes, self.elapsed_s))

    async def make_room(self, parent: NodeState, count: int, left: int) -> None:
        """Wait until `parent` may make `count` of the `left` nodes that it expands into."""
        await self._pace.take(count)
        self._scheduler.check_room(parent, left)

    def cancel_inside(self, parent: NodeState, node: NodeId, reason: str) -> None:
        """End a node that `parent` appended."""
        state = self._scheduler.states.get(node)
        if state is None or state.parent is not parent:
            raise UnknownReference(f"{node!r} was not appended here", node=parent.node.id)
        state.tolerated |= state.outcome is None
        self._signal(CancelRequested(reason, node))

    def spend(self, state: NodeState, usage: Usage) -> None:
        """Charge consumption."""
        self._perform(self._scheduler.spend(state, usage, self.elapsed_s))

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest token allowance left for a node."""
        return self._scheduler.tokens_left(state)

    def time_left(self, state: NodeState) -> float | None:
        """Seconds until something ends a node."""
        return self._scheduler.time_left(state, self.elapsed_s)

    def program(self, state: NodeState) -> Program:
        """Where a node stands in this run."""
        path, work = self._scheduler.remaining()
        place = f"{self._flow}/{stem(state.node.id)}"
        return Program(self.id, state.rank, max(state.rank, path), work, place)

    async def outcome(self, waiting: NodeState, node: NodeId) -> Outcome:
        """Wait, in the work of `waiting`, for the end of a node."""
        state = self._scheduler.states.get(node)
        if state is None:
            raise UnknownReference(f"there is no node {node!r}", node=waiting.node.id)
        if state.outcome is not None:
            return state.outcome
        self._perform(self._scheduler.rest(waiting, state, self.elapsed_s))
        ended: Outcome | None = self._scheduler.states[node].outcome
        if ended is not None:  # with the slot given back it was recalled at once
            return ended
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(node, []).append(waiter)
        return await waiter
