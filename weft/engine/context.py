"""What a running node sees of its run; implements `NodeContext`. Holds no state of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from weft.core.errors import Failure, RunError
from weft.core.events import (
    Event,
    NodeDecoded,
    NodeDenoised,
    NodeLogged,
    NodeRerouted,
    NodeStreamed,
    Outcome,
)
from weft.core.ids import NodeId, attempt
from weft.core.ports import Program
from weft.core.values import Denoised, Speculated, Usage
from weft.engine.node import Node, Streamed
from weft.engine.state import NodeState


class Host(Protocol):
    """The run, as far as a node may reach it."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run started."""

    def emit(self, event: Event) -> None:
        """Tell the listeners."""

    def spend(self, state: NodeState, usage: Usage) -> None:
        """Charge consumption."""

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest token allowance left."""

    def time_left(self, state: NodeState) -> float | None:
        """Seconds until something ends a node."""

    def program(self, state: NodeState) -> Program:
        """Where a node stands in the run."""

    @property
    def services(self) -> object:
        """What the works of the run share."""

    def append(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        """Add nodes to a node that is running."""

    async def make_room(self, parent: NodeState, count: int, left: int) -> None:
        """Wait until a node may make some of the nodes that it expands into."""

    def cancel_inside(self, parent: NodeState, node: NodeId, reason: str) -> None:
        """End a node that `parent` appended."""

    async def outcome(self, waiting: NodeState, node: NodeId) -> Outcome:
        """Wait for the end of a node."""


class Context:
    """Use it in the event loop's thread only, and only while the node's work runs.

    It belongs to one attempt: code that refuses to be cancelled cannot act for the next.
    """

    __slots__ = ("_attempt", "_epoch", "_run", "_state")

    def __init__(self, run: Host, state: NodeState, epoch: int) -> None:
        self._run = run
        self._state = state
        self._epoch = epoch
        self._attempt = state.attempt

    @property
    def node(self) -> NodeId:
        return self._state.node.id

    @property
    def scope(self) -> NodeId:
        return attempt(self._state.node.id, max(1, self._attempt))

    @property
    def attempt(self) -> int:
        return self._attempt

    @property
    def priority(self) -> int:
        return int(self._state.rank * 1000)

    @property
    def program(self) -> Program:
        return self._run.program(self._state)

    @property
    def services(self) -> Any:
        return self._run.services

    def log(self, text: str) -> None:
        self._run.emit(NodeLogged(self.node, text, self._run.elapsed_s))

    def stream(self, text: str, tokens: int = 0) -> None:
        self._run.emit(NodeStreamed(self.node, text, tokens, self._run.elapsed_s))

    def reroute(self, to: NodeId, failure: Failure) -> None:
        self._must_run()
        self._run.emit(NodeRerouted(self.node, to, failure, self._run.elapsed_s))

    def spend(self, usage: Usage) -> None:
        self._run.spend(self._state, usage)

    def decoded(self, how: Speculated | Denoised | None) -> None:
        if isinstance(how, Denoised):
            self._run.emit(NodeDenoised(self.node, how, self._run.elapsed_s))
        elif how is not None:
            self._run.emit(NodeDecoded(self.node, how, self._run.elapsed_s))

    def tokens_left(self) -> int | None:
        return self._run.tokens_left(self._state)

    def time_left(self) -> float | None:
        return self._run.time_left(self._state)

    def append(self, nodes: Sequence[Node]) -> None:
        self._must_run()
        self._run.append(self._state, nodes)

    async def make_room(self, count: int, left: int | None = None) -> None:
        self._must_run()
        await self._run.make_room(self._state, count, count if left is None else left)

    def cancel(self, node: NodeId, reason: str) -> None:
        self._must_run()
        self._run.cancel_inside(self._state, node, reason)

    async def outcome(self, node: NodeId) -> Outcome:
        self._must_run()
        return await self._run.outcome(self._state, node)

    async def items(self, streamed: Streamed) -> AsyncGenerator[Any, None]:
        for node in streamed.nodes:
            outcome = await self.outcome(node)
            if outcome.ok:
                yield outcome.value
            elif outcome.failure is not None:
                raise RunError(f"item {node} {outcome.status}: {outcome.failure.message}")

    def _must_run(self) -> None:
        if self._state.epoch != self._epoch:
            raise RunError(
                f"attempt {self._attempt} is over", node=self.node, hint="let cancellation pass"
            )
