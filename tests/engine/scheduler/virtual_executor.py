"""Performs a scheduler's commands without any event loop: a heap of moments, coroutines by hand.

A second shell around the same decisions, to see that the first one (`Run`) decides nothing itself.
Works may only wait with `pause`; what they await besides is not known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from weft.core.errors import NodeFailed, convert
from weft.core.events import Event, HumanAsked, NodeFinished, Outcome
from weft.core.ids import NodeId, attempt
from weft.core.values import Usage
from weft.engine import Graph, Node, RunOptions
from weft.engine.scheduler.commands import (
    Answered,
    CancelRequested,
    ClearTimers,
    Command,
    Raised,
    Returned,
    SetTimer,
    Signal,
    Start,
    Stop,
    TimerFired,
)
from weft.engine.scheduler.scheduler import Scheduler
from weft.engine.scheduler.state import NodeState


class pause:  # noqa: N801 - it reads like a function: `await pause(3)`
    """Waits in the event loop there is, and without one hands its seconds to who drives it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator[Any, None, None]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            yield self.seconds
        else:
            yield from asyncio.sleep(self.seconds).__await__()


@dataclass
class _Context:
    executor: VirtualExecutor
    state: NodeState
    attempt: int

    @property
    def node(self) -> NodeId:
        return self.state.node.id

    @property
    def timed_out(self) -> bool:
        return False

    @property
    def scope(self) -> NodeId:
        return attempt(self.node, max(1, self.attempt))

    def append(self, nodes: Sequence[Node]) -> None:
        executor = self.executor
        executor.perform(executor.scheduler.append(self.state, nodes, executor.now))

    def spend(self, usage: Usage) -> None:
        executor = self.executor
        executor.perform(executor.scheduler.spend(self.state, usage, executor.now))


Resume = tuple[NodeState, int, Coroutine[Any, Any, Any]]


class VirtualExecutor:
    """Runs `graph` to its end, or for ever; answers every question with `answer` at once."""

    def __init__(self, graph: Graph, options: RunOptions, answer: Any = None) -> None:
        self.scheduler = Scheduler(graph, options)
        self.now = 0.0
        self.events: list[Event] = []
        self._answer = answer
        self._serial = 0
        self._moments: list[tuple[float, int, Resume | TimerFired | CancelRequested]] = []
        self._running: dict[NodeState, int] = {}
        self._cleared: dict[NodeState, int] = {}
        self._inbox: list[Signal] = []

    def cancel_at(self, seconds: float, reason: str, node: NodeId | None = None) -> None:
        self._at(seconds, CancelRequested(reason, node))

    def run(self) -> dict[NodeId, Outcome]:
        self.perform(self.scheduler.begin())
        while not self.scheduler.done:
            assert self._moments or self._inbox, "nothing left to happen, and the run is not over"
            if not self._inbox:
                self._next_moment()
            signals, self._inbox = self._inbox, []
            signals.sort(key=lambda s: getattr(getattr(s, "state", None), "order", -1))
            self.perform(self.scheduler.advance(signals, self.now))
        for _, _, what in self._moments:
            if isinstance(what, tuple) and not isinstance(what, TimerFired):
                what[2].close()
        ended = [event for event in self.events if isinstance(event, NodeFinished)]
        assert len({event.node for event in ended}) == len(ended)
        return {event.node: event.outcome for event in ended}

    def perform(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Start(state, epoch, work, argument):
                    context = _Context(self, state, state.attempt)
                    self._running[state] = epoch
                    self._at(self.now, (state, epoch, work(context, argument)))  # type: ignore[arg-type]
                case Stop(state):
                    del self._running[state]
                case SetTimer(state, epoch, kind, delay_s):
                    self._at(self.now + delay_s, TimerFired(state, epoch, kind))
                case ClearTimers(state):
                    self._cleared[state] = self._serial
                case HumanAsked(node):
                    self.events.append(command)
                    self._inbox.append(Answered(node, self._answer))
                case _:
                    self.events.append(command)

    def _at(self, seconds: float, what: Resume | TimerFired | CancelRequested) -> None:
        self._serial += 1
        heappush(self._moments, (seconds, self._serial, what))

    def _next_moment(self) -> None:
        moment, serial, what = heappop(self._moments)
        self.now = max(self.now, moment)
        if isinstance(what, CancelRequested):
            self._inbox.append(what)
        elif isinstance(what, TimerFired):
            if what.state is None or serial > self._cleared.get(what.state, 0):
                self._inbox.append(what)
        else:
            self._resume(*what)

    def _resume(self, state: NodeState, epoch: int, work: Coroutine[Any, Any, Any]) -> None:
        if self._running.get(state) != epoch:
            work.close()
            return
        signal: Signal
        try:
            seconds = work.send(None)
        except StopIteration as returned:
            signal = Returned(state, epoch, returned.value)
        except asyncio.CancelledError:
            error = NodeFailed("its own code raised CancelledError", node=state.node.id)
            signal = Raised(state, epoch, error)
        except BaseException as error:
            signal = Raised(state, epoch, convert(error, state.node.id))
        else:
            self._at(self.now + seconds, (state, epoch, work))
            return
        if self._running.get(state) == epoch:
            del self._running[state]
            self._inbox.append(signal)
