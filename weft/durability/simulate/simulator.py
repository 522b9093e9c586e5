"""Plays scripts with the run's own scheduler, in virtual time, with a heap for a clock."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from weft.core.errors import InternalError, RunError
from weft.core.events import Event, HumanAsked, JoinMode, Listener, NodeFinished
from weft.core.ids import NodeId, attempt
from weft.core.recorded_errors import error_of_failure
from weft.core.values import Usage
from weft.durability.simulate.change import Change, SimulatedTimes
from weft.durability.simulate.machine import MachineModel, Processor
from weft.durability.simulate.script import (
    AppendStep,
    Attempt,
    AwaitStep,
    ExpandStep,
    HumanStep,
    NodeScript,
    RecordedRun,
    Step,
    WorkStep,
)
from weft.engine.graph.graph import Graph, RunOptions
from weft.engine.graph.node import MISSING, AskHuman, Edge, Expand, Join, Node, Policy, Retry, Skip
from weft.engine.scheduler.commands import (
    Answered,
    ClearTimers,
    Command,
    Raised,
    Restore,
    Returned,
    SetTimer,
    Signal,
    Start,
    Stop,
    TimerFired,
)
from weft.engine.scheduler.scheduler import Scheduler
from weft.engine.scheduler.state import NodePhase, NodeState


class ScriptedFn:
    """The node function of a scripted node. It is never called: the simulator plays its script.

    `prefix`: the beginning of ids inside it in the record, and the one that replaces it here.
    """

    __slots__ = ("prefix", "script")

    def __init__(self, script: NodeScript, prefix: tuple[str, str] = ("", "")) -> None:
        self.script = script
        self.prefix = prefix

    async def __call__(self, _context: object, _inputs: object) -> Any:
        raise InternalError("a script is played, not run")

    def named(self, node: NodeId) -> NodeId:
        """The id here of a recorded node."""
        before, now = self.prefix
        return NodeId(now + node[len(before) :]) if before and node.startswith(before) else node


async def continues(_context: object, _value: object) -> Any:
    """A placeholder for what a node does after a pause. It is never called."""
    raise InternalError("a script is played, not run")


def scripted_fn(state: NodeState) -> ScriptedFn:
    """The script function of `state`."""
    work = state.node.work
    assert isinstance(work, ScriptedFn)
    return work


def inside(state: NodeState) -> ScriptedFn:
    """The names of what `state` appends: as recorded, or those of an attempt without a record."""
    own = scripted_fn(state)
    if state.attempt <= max(len(own.script.attempts), 1):
        return own
    return ScriptedFn(own.script, (own.script.info.id, attempt(state.node.id, state.attempt)))


class ScriptedNodes:
    """Makes nodes of scripts. `every`: all recorded scripts, by id.

    The value of a played node is its recorded id, so that a `first_valid` join can identify it; the
    value of a map is the list of its items' values.
    """

    def __init__(self, every: Mapping[NodeId, NodeScript]) -> None:
        self._every = every

    def node(self, script: NodeScript, prefix: tuple[str, str]) -> Node:
        """The node that plays `script`."""
        info = script.info
        own = ScriptedFn(script, prefix)
        edges = tuple(
            Edge(own.named(source), str(n), stream=source in info.streams)
            for n, source in enumerate(info.sources)
        )
        join = self.join(script, info.join, info.quorum, cancels=info.cancels)
        return Node(own.named(info.id), own, edges, {}, join, self._policy(script, own), info.kind)

    def join(self, script: NodeScript, mode: JoinMode, k: int, *, cancels: bool = False) -> Join:
        """A join of `script`: its own, or that of its expansion."""
        if mode != "first_valid":
            return Join(mode, k, default=MISSING, cancel_rest=cancels)
        rejects = script.rejects
        return Join(mode, k, lambda value: self._node_of(value) not in rejects, None, cancels)

    def _policy(self, script: NodeScript, own: ScriptedFn) -> Policy:
        info = script.info
        retry, fallback = None, None
        if info.attempts > 1:
            retry = Retry(info.attempts, script.retry_delay_s, jitter=0.0)
        if script.fallback is not None:
            inner = self.node(script.fallback, own.prefix)
            name = NodeId(inner.id.rpartition("/")[2])
            fallback = Node(name, inner.work, policy=inner.policy)
        return Policy(
            retry=retry,
            fallback=fallback,
            default=info.id if script.default else MISSING,
            on_failure="skip" if info.may_fail else "fail",
            resource=info.resource,
            weight=info.weight,
        )

    def _node_of(self, value: object) -> NodeId | None:
        if isinstance(value, str):
            return NodeId(value)
        first = self._node_of(value[0]) if isinstance(value, list) and value else None
        return None if first is None else self._every[first].info.parent


_Due = tuple[float, int, "NodeState | None", int, Any]


class Injected(RunError):
    """An injected failure."""

    retryable = True


@dataclass(frozen=True, slots=True)
class _Computed:
    """Code of a node that computes, and then waits for `wait_s`."""

    state: NodeState
    epoch: int
    wait_s: float


class RunSimulator:
    """Simulates a recorded run under `change`; `listeners` get its events."""

    def __init__(
        self,
        recording: RecordedRun,
        change: Change,
        times: SimulatedTimes,
        listeners: Iterable[Listener] = (),
    ) -> None:
        self._change = change
        self._times = times
        self._listeners = list(listeners)
        general, classes = change.slots(recording.limits)
        options = RunOptions(general, classes, seed=change.seed, max_nodes=None)
        self._nodes = ScriptedNodes(recording.every)
        nodes = [self._nodes.node(script, ("", "")) for script in recording.nodes]
        self._machine = MachineModel(recording)
        self._processor = Processor(self._machine.processors)
        self._loop_s = 0.0
        self.graph = Graph(recording.flow, nodes)
        self.scheduler = Scheduler(self.graph, options)
        self.now_s = 0.0
        self.usage = Usage()
        self.events = 0
        self._due: list[_Due] = []
        self._count = 0
        self._steps: dict[NodeState, deque[Step]] = {}
        self._persons: dict[NodeId, float] = {}
        self._waiting: defaultdict[NodeId, list[tuple[NodeState, int]]] = defaultdict(list)

    def play(self) -> float:
        """Play to the end; return the seconds that the run took."""
        self._perform(self.scheduler.begin())
        while not self.scheduler.done and (next_s := self._next_s()) is not None:
            self._step(max(next_s, self.now_s))
        if not self.scheduler.done:
            raise InternalError("the simulated run has nothing left to wait for, and is not done")
        return self.now_s

    def _next_s(self) -> float | None:
        """The time of the next event."""
        moments = [self._due[0][0]] if self._due else []
        if (ended_s := self._processor.next_s) is not None:
            moments.append(ended_s)
        return min(moments, default=None)

    def _step(self, now_s: float) -> None:
        """Process all that is due at `now_s`, in declared order; then the loop is busy with it."""
        self.now_s = now_s
        signals: list[Signal] = []
        for computed in self._processor.ended(now_s):
            assert isinstance(computed, _Computed)
            self._at(now_s + computed.wait_s, computed.state, computed.epoch, None)
        while self._due and self._due[0][0] <= self.now_s:
            _, _, state, epoch, what = heappop(self._due)
            if isinstance(what, Answered | TimerFired):
                signals.append(what)
            elif state is not None and state.epoch == epoch:
                signals += self._go_on(state, epoch)
        signals.sort(key=_declared_order)
        if signals:
            self._perform(self.scheduler.advance(signals, self.now_s))
            self._loop_s += self._machine.step_s
        self.now_s += self._loop_s
        self._loop_s = 0.0

    def _perform(self, commands: Iterable[Command]) -> None:
        begun: list[Signal] = []
        for command in commands:
            if isinstance(command, Start):
                begun += self._start(command)
            elif isinstance(command, SetTimer):
                fired = TimerFired(command.state, command.epoch, command.kind)
                self._at(self.now_s + command.delay_s, command.state, command.epoch, fired)
            elif isinstance(command, Restore):
                raise InternalError("a simulated run recalls nothing")
            elif not isinstance(command, Stop | ClearTimers):
                self._emit(command)
        if begun:
            begun.sort(key=_declared_order)
            self._perform(self.scheduler.advance(begun, self.now_s))

    def _emit(self, event: Event) -> None:
        self.events += 1
        if type(event) is HumanAsked:
            answered_s = self.now_s + self._persons.pop(event.node)
            self._at(answered_s, None, 0, Answered(event.node, None))
        elif type(event) is NodeFinished:
            for state, epoch in self._waiting.pop(event.node, ()):
                self._at(self.now_s, state, epoch, None)
            state = self.scheduler.states[event.node]
            self._steps.pop(state, None)
            self._loop_s += self._machine.loop_s(scripted_fn(state).script.info.id)
        for listener in self._listeners:
            listener(event)

    def _at(self, at_s: float, state: NodeState | None, epoch: int, what: object) -> None:
        self._count += 1
        heappush(self._due, (at_s, self._count, state, epoch, what))

    # -- scripts -----------------------------------------------------------------------------

    def _start(self, start: Start) -> list[Signal]:
        state, epoch = start.state, start.epoch
        if start.work is state.node.work:
            self._steps[state] = deque(self._attempt(state).steps)
        elif start.work is not continues:  # the engine's own: the node's substitute has ended
            value = _value(state) if start.argument else Skip()
            return [Returned(state, epoch, value)]
        return self._go_on(state, epoch)

    def _attempt(self, state: NodeState) -> Attempt:
        script = scripted_fn(state).script
        recorded = script.attempts
        if not recorded:
            return Attempt()
        attempt = recorded[min(state.attempt, len(recorded)) - 1]
        first = attempt.steps[0] if attempt.steps else None
        work = first if isinstance(first, WorkStep) else None
        if self._change.fails(state.node.id, state.attempt, work):
            injected = Injected("the simulation made it fail").failure()
            return Attempt([work] if work is not None else [], injected)
        return attempt

    def _go_on(self, state: NodeState, epoch: int) -> list[Signal]:
        """Play the next steps of a node that runs, up to one that takes time."""
        steps = self._steps.get(state) or deque()
        while steps:
            step = steps.popleft()
            match step:
                case WorkStep():
                    if self._begins_work(state, epoch, step):
                        return []
                case AppendStep(nodes=nodes):
                    appended = self._children(state, nodes)
                    self._perform(self.scheduler.append(state, appended, self.now_s))
                case AwaitStep(node=node):
                    if self._begins_wait(state, epoch, node):
                        return []
                case ExpandStep():
                    return [Returned(state, epoch, self._grow(state, step))]
                case HumanStep(seconds=seconds):
                    self._persons[state.node.id] = seconds
                    return [Returned(state, epoch, AskHuman("", then=continues))]
        return [self._end(state, epoch)]

    def _begins_work(self, state: NodeState, epoch: int, work: WorkStep) -> bool:
        """Begin `work`, if it takes any time; whether it does."""
        seconds = self._times.of(state.node.id, work)
        if seconds <= 0:
            return False
        need = self._machine.need(scripted_fn(state).script.info.id, work)
        changed = seconds / work.seconds if work.seconds > 0 else 1.0
        if need.cpu_s > 0:
            computed = _Computed(state, epoch, need.wait_s * changed)
            self._processor.add(self.now_s, need.cpu_s * changed, computed)
        else:
            wait_s = need.wait_s * changed if work.seconds > 0 else seconds
            self._at(self.now_s + wait_s, state, epoch, None)
        return True

    def _begins_wait(self, state: NodeState, epoch: int, node: NodeId) -> bool:
        other = self.scheduler.states.get(scripted_fn(state).named(node))
        if other is None or other.phase is NodePhase.ENDED:
            return False
        self._waiting[other.node.id].append((state, epoch))
        self._perform(self.scheduler.wait_for(state, other, self.now_s))
        return True

    def _grow(self, state: NodeState, growth: ExpandStep) -> Expand:
        named = inside(state).named
        return Expand(
            tuple(self._children(state, growth.nodes)),
            tuple(named(node) for node in growth.results),
            continues if self._goes_on(state) else None,
            self._nodes.join(scripted_fn(state).script, growth.join.mode, growth.join.k),
            growth.width,
            growth.items,
        )

    def _goes_on(self, state: NodeState) -> bool:
        """Whether a node continues after the expansion that it pauses for."""
        ends_otherwise = (
            scripted_fn(state).script.skipped or self._attempt(state).failure is not None
        )
        return ends_otherwise or bool(self._steps[state])

    def _children(self, state: NodeState, scripts: Iterable[NodeScript]) -> list[Node]:
        prefix = inside(state).prefix
        return [self._nodes.node(script, prefix) for script in scripts]

    def _end(self, state: NodeState, epoch: int) -> Signal:
        script = scripted_fn(state).script
        self._steps.pop(state, None)
        failure = self._attempt(state).failure
        if failure is not None:
            return Raised(state, epoch, error_of_failure(failure))
        self.usage += script.usage
        return Returned(state, epoch, Skip() if script.skipped else _value(state))


def _value(state: NodeState) -> NodeId:
    """The value of a node: its recorded id."""
    return scripted_fn(state).script.info.id


def _declared_order(signal: Signal) -> int:
    state = getattr(signal, "state", None)
    return -1 if state is None else state.order
