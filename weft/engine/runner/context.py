"""The `NodeContext` of a running node."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from weft.core.errors import Cancelled, Failure, RunError, UnknownReference
from weft.core.events import (
    Event,
    NodeDecoded,
    NodeDenoised,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeStreamed,
    Outcome,
)
from weft.core.ids import NodeId, RunId, attempt, attempts, inside, stem
from weft.core.ports import Program
from weft.core.values import Denoised, Speculated, Usage
from weft.engine.graph.node import QUESTION, AskHuman, Inputs, Node, NodeContext, StreamedItems
from weft.engine.graph.slices import ExpansionPacer
from weft.engine.runner.waits import NodeWaits
from weft.engine.scheduler.commands import CancelRequested, Command, Signal
from weft.engine.scheduler.scheduler import Scheduler
from weft.engine.scheduler.state import NodeState


class AttemptContext:
    """The context of one attempt: code that ignores its cancellation cannot act for the next one.

    For the event loop's thread only, while the node function runs.
    """

    __slots__ = ("_attempt", "_epoch", "_run", "_state")

    def __init__(self, run: RunHost, state: NodeState, epoch: int) -> None:
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
    def timed_out(self) -> bool:
        return self._state.timed_out == self._attempt > 0

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

    def repairing(self, number: int, failure: Failure) -> None:
        self._run.emit(NodeRepairing(self.node, number, failure, self._run.elapsed_s))

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

    async def ask(
        self, question: AskHuman, name: str, identity: str, *, any_attempt: bool = False
    ) -> Any:
        self._must_run()
        return await self._run.ask(self._state, question, name, identity, any_attempt=any_attempt)

    def answer_of(self, node: NodeId, name: str) -> Any:
        self._must_run()
        return self._run.answer_of(node, name)

    async def items(self, streamed: StreamedItems) -> AsyncGenerator[Any, None]:
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


_ROUNDING = 1e-6
"""Weights are added up and taken away one by one."""
_Waiter = tuple[asyncio.Future[Outcome], NodeState, asyncio.Task[object]]


def _returns(state: NodeState, work: float) -> bool | None:
    """Whether more model calls are known to follow one of `state` in its session.

    `work` is the run's, which is one session at the top. Inside, a parent that spends calls again,
    and what comes after `state` there makes its rank greater than its weight.
    """
    policy, parent = state.node.policy, state.parent
    if parent is None:
        follows = work > (policy.weight if policy.spends else 0.0) + _ROUNDING
    else:
        follows = parent.node.policy.spends
        follows = follows or state.rank > parent.rank + policy.weight + _ROUNDING
    return True if follows else None


class RunHost(ABC):
    """The part of a run that its node functions can use."""

    def __init__(
        self, run: RunId, flow: str, scheduler: Scheduler, services: object = None
    ) -> None:
        self.id = run
        self.services = services
        self._flow = flow
        self._scheduler = scheduler
        self._pace = ExpansionPacer()
        self._waiters: dict[NodeId, list[_Waiter]] = {}
        self._waits = NodeWaits(self._waits_changed)
        self._tasks: dict[NodeState, asyncio.Task[None]] = {}

    @property
    @abstractmethod
    def elapsed_s(self) -> float:
        """Seconds since the run started."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Pass `event` to every listener."""

    @abstractmethod
    def _perform(self, commands: Sequence[Command]) -> None:
        """Carry out what the scheduler decided."""

    @abstractmethod
    def _signal(self, signal: Signal) -> None:
        """Pass `signal` to the scheduler in the next step."""

    def append(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        """Add nodes to a running node, all of them at once."""
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
        """Charge `usage` to the budgets of `state`."""
        self._perform(self._scheduler.spend(state, usage, self.elapsed_s))

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest token allowance left for a node."""
        return self._scheduler.tokens_left(state)

    def time_left(self, state: NodeState) -> float | None:
        """Seconds until something ends a node."""
        return self._scheduler.time_left(state, self.elapsed_s)

    def program(self, state: NodeState) -> Program:
        """The position of a node in this run."""
        path, work = self._scheduler.remaining()
        place, returns = f"{self._flow}/{stem(state.node.id)}", _returns(state, work)
        longest = max(state.rank, path)
        return Program(self.id, state.rank, longest, work, place, state.node.id, returns)

    async def outcome(self, waiting: NodeState, node: NodeId) -> Outcome:
        """Wait, in the node function of `waiting`, for the end of a node."""
        state = self._scheduler.states.get(node)
        if state is None:
            raise UnknownReference(f"there is no node {node!r}", node=waiting.node.id)
        if state.outcome is not None:
            return state.outcome
        self._perform(self._scheduler.wait_for(waiting, state, self.elapsed_s))
        ended: Outcome | None = self._scheduler.states[node].outcome
        if ended is not None:  # the slot it gave back let that node start, and be restored, at once
            return ended
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        task = self._waits.begin(waiting, self._tasks.get(waiting))
        self._waiters.setdefault(node, []).append((waiter, waiting, task))
        self._waits_changed()
        try:
            return await waiter
        finally:
            if waiter.cancelled():
                self._waits.end(waiting, task)

    def _wake(self, node: NodeId, outcome: Outcome) -> None:
        """Let those continue that wait for the end of `node`."""
        for waiter, waiting, task in self._waiters.pop(node, ()):
            if not waiter.done():
                waiter.set_result(outcome)
                self._waits.end(waiting, task)

    async def ask(
        self,
        asking: NodeState,
        question: AskHuman,
        name: str,
        identity: str,
        *,
        any_attempt: bool = False,
    ) -> Any:
        """Ask in a node inside `asking`; an answer to an earlier attempt of `asking` counts.

        `any_attempt`: also one to an attempt of a node around it, unless the record of this run has
        the question here too, as before such an answer counted.
        """
        states = self._scheduler.states
        scope = attempt(asking.node.id, max(1, asking.attempt))
        node, copy = inside(scope, name), 1
        places = [inside(attempt(asking.node.id, n), name) for n in range(1, asking.attempt)]
        if any_attempt and not self._scheduler.has_asked(node, question):
            places += [inside(place, name) for place in attempts(scope) if place != scope]
        if (before := self._answered(places)) is not None:
            return before.value
        while node in states:
            copy += 1
            node = inside(scope, f"{name}_{copy}")

        async def ask(_: NodeContext, __: Inputs) -> AskHuman:
            return question

        self.append(asking, [Node(node, ask, kind=QUESTION, identity=identity)])
        outcome = await self.outcome(asking, node)
        if not outcome.ok:
            raise Cancelled(str(outcome.failure or "the question was cancelled"), node=node)
        return outcome.value

    def answer_of(self, node: NodeId, name: str) -> Any:
        """See `NodeContext.answer_of`."""
        state = self._scheduler.states.get(node)
        if state is None or state.outcome is None:
            raise UnknownReference(f"there is no node {node!r} that has ended")
        last = attempt(node, max(1, state.attempt, state.outcome.attempts))
        found = self._answered(inside(place, name) for place in attempts(last))
        return None if found is None else found.value

    def _answered(self, places: Iterable[NodeId]) -> Outcome | None:
        """The outcome of the first node in `places` that has succeeded."""
        states = (self._scheduler.states.get(place) for place in places)
        ends = (state.outcome for state in states if state is not None)
        return next((end for end in ends if end is not None and end.ok), None)

    @abstractmethod
    def _waits_changed(self) -> None:
        """A node function began to wait, or a task of one ended."""
