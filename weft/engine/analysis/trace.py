"""What happened in a run, node by node, folded from its events in constant time each.

Reads only events, without graph or clock, and also works on an unfinished run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from weft.core.events import (
    BreakerChanged,
    BudgetReached,
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeInfo,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunMeasured,
    RunResumed,
    RunStarted,
    RunStatus,
)
from weft.core.ids import NodeId
from weft.core.values import Denoised, Speculated, Usage

Doing = Literal["work", "children", "delay", "person"]


class Moment(NamedTuple):
    """A point of the run: its index in the order of events, and its time.

    Two events may carry the same time; their order still separates cause from effect.
    """

    seq: int
    at_s: float


@dataclass(slots=True)
class TracePhase:
    """What a node did from `begun` to `ended` (None: it still does).

    work      its own code ran
    children  it waited for nodes it appended, and then continued with their values
    delay     it waited until `until_s` before its next attempt, and then for a slot
    person    it waited for an answer

    `failed`: this was part of an attempt that failed.
    """

    doing: Doing
    begun: Moment
    ended: Moment | None = None
    until_s: float = 0.0
    failed: bool = False

    def seconds(self, now_s: float) -> float:
        """Its duration, until `now_s` if it has not ended."""
        return (now_s if self.ended is None else self.ended.at_s) - self.begun.at_s


@dataclass(slots=True)
class NodeTrace:
    """The history of one node. `born`: it joined the graph; `grew`: it first appended nodes."""

    info: NodeInfo
    born: Moment
    phases: list[TracePhase] = field(default_factory=list)
    ended: Moment | None = None
    outcome: Outcome | None = None
    attempts: int = 0
    repairs: int = 0
    usage: Usage = field(default_factory=Usage)
    decoded: list[Speculated | Denoised] = field(default_factory=list)
    streamed_tokens: int = 0
    grew: Moment | None = None
    children: int = 0
    failed_children: int = 0
    ended_children: list[tuple[Moment, NodeId]] = field(default_factory=list)

    @property
    def phase(self) -> TracePhase | None:
        """Its current phase; None before it starts and after it ends."""
        return self.phases[-1] if self.phases and self.ended is None else None

    @property
    def started_s(self) -> float | None:
        """When its first attempt began."""
        return next((phase.begun.at_s for phase in self.phases if phase.doing == "work"), None)

    @property
    def finished_s(self) -> float | None:
        """When it ended."""
        return None if self.ended is None else self.ended.at_s

    def ended_between(self, after: Moment, before: Moment) -> list[tuple[Moment, NodeId]]:
        """The children that ended within the two moments, in order."""
        ends = self.ended_children
        return ends[
            bisect_left(ends, (after, NodeId(""))) : bisect_left(ends, (before, NodeId("")))
        ]

    @property
    def cancelled(self) -> bool:
        """Whether it ended by being cancelled."""
        return self.outcome is not None and self.outcome.status == "cancelled"

    @property
    def end_rank(self) -> tuple[float, bool, int]:
        """Orders ends: by time, then the cancelled before the others, then by event.

        A join's losers are cancelled in the same step as its winner ends; the winner counts.
        """
        assert self.ended is not None
        return self.ended.at_s, not self.cancelled, self.ended.seq


class Trace:
    """A listener: call it with each event of one run, in order.

    `active` and `waiting` contain the nodes that started and have not ended, oldest first: those
    that work or wait for time or a person, and those that wait for nodes they appended. `ended`
    counts ends by status, `running` the nodes at work and `max_running` the most ever. `parts`: the
    number of processes that the run has had. Events of an earlier part stay; what is restored from
    it is not counted again. `recalled`: the nodes of this part that ended by their history.
    """

    def __init__(self) -> None:
        self.run = ""
        self.flow = ""
        self.limits: Mapping[str, int] = {}
        self.nodes: dict[NodeId, NodeTrace] = {}
        self.active: dict[NodeId, None] = {}
        self.waiting: dict[NodeId, None] = {}
        self.last_ended: NodeId | None = None
        self.status: RunStatus | None = None
        self.reasons: tuple[str, ...] = ()
        self.leaked: tuple[NodeId, ...] = ()
        self.budgets: list[BudgetReached] = []
        self.breakers: list[BreakerChanged] = []
        self.usage = Usage()
        self.running = 0
        self.max_running = 0
        self.ended: dict[str, int] = {}
        self.now = Moment(0, 0.0)
        self.parts = 1
        self.recalled = 0
        self._past_ends: set[NodeId] = set()

    def __call__(self, event: Event) -> None:
        """Add one event. Events of unknown nodes are ignored."""
        self.now = Moment(self.now.seq + 1, max(self.now.at_s, event.at_s))
        self.recalled += isinstance(event, NodeFinished) and event.recalled
        match event:
            case RunStarted():
                self.run, self.flow, self.limits = event.run, event.flow, event.limits
                self._add(event.nodes)
            case GraphGrew():
                self._add(event.nodes)
                if parent := self.nodes.get(event.parent):
                    parent.grew = parent.grew or self.now
                    parent.children += len(event.nodes)
            case RunResumed():
                self.parts, self.recalled = event.part, 0
                self._past_ends = {name for name, n in self.nodes.items() if n.ended is not None}
            case BudgetReached() | BreakerChanged():
                self._note_limit(event)
            case RunFinished():
                self.status, self.reasons = event.status, event.reasons
                self.leaked = event.leaked
            case RunMeasured():
                pass  # describes the machine
            case NodeFinished() | NodeSpent() if event.recalled and event.node in self._past_ends:
                pass  # counted in an earlier part
            case _:
                if node := self.nodes.get(event.node):
                    self._node_event(node, event)

    def _note_limit(self, event: BudgetReached | BreakerChanged) -> None:
        if isinstance(event, BudgetReached):
            self.budgets.append(event)
        else:
            self.breakers.append(event)

    def _node_event(self, node: NodeTrace, event: Event) -> None:
        match event:
            case NodeStreamed():
                node.streamed_tokens += event.tokens
            case NodeStarted():
                node.attempts = max(node.attempts, event.attempt)
                self._reopen(node)
                self._enter(node, "work")
            case NodeWaiting():
                self._enter(node, "children")
            case NodeRerouted():
                self._leave(node, failed=True)
                self._enter(node, "children")
            case NodeFinished():
                self._end(node, event.outcome)
            case NodeSpent():
                node.usage += event.usage
                self.usage += event.usage
            case NodeDecoded() | NodeDenoised() | NodeRepairing():
                _note_answer(node, event)
            case NodeRetrying():
                self._leave(node, failed=True)
                self._enter(node, "delay", event.at_s + event.delay_s)
            case HumanAsked() | HumanAnswered():
                self._enter(node, "person" if isinstance(event, HumanAsked) else "work")

    def _add(self, infos: tuple[NodeInfo, ...]) -> None:
        for info in infos:
            if info.id not in self.nodes:
                self.nodes[info.id] = NodeTrace(info, self.now)

    def _reopen(self, node: NodeTrace) -> None:
        """Drop the end of a node that runs again in a later part of the run."""
        if node.outcome is not None:
            self.ended[node.outcome.status] -= 1
            node.ended = node.outcome = None

    def _enter(self, node: NodeTrace, doing: Doing, until_s: float = 0.0) -> None:
        self._leave(node)
        node.phases.append(TracePhase(doing, self.now, until_s=until_s))
        (self.waiting if doing == "children" else self.active)[node.info.id] = None
        if doing == "work":
            self.running += 1
            self.max_running = max(self.max_running, self.running)

    def _leave(self, node: NodeTrace, *, failed: bool = False) -> None:
        phase = node.phase
        if phase is None or phase.ended is not None:
            return
        phase.ended, phase.failed = self.now, failed
        (self.waiting if phase.doing == "children" else self.active).pop(node.info.id, None)
        self.running -= phase.doing == "work"

    def _end(self, node: NodeTrace, outcome: Outcome) -> None:
        self._leave(node, failed=outcome.status == "failed")
        node.ended, node.outcome = self.now, outcome
        self.last_ended = node.info.id
        self.ended[outcome.status] = self.ended.get(outcome.status, 0) + 1
        parent = None if node.info.parent is None else self.nodes.get(node.info.parent)
        if parent is not None:
            parent.ended_children.append((self.now, node.info.id))
            parent.failed_children += outcome.status == "failed"

    @property
    def wall_s(self) -> float:
        """How long the run took, or has taken until its latest event."""
        return self.now.at_s

    def waited_for(self, node: NodeTrace, phase: TracePhase, until: Moment) -> NodeTrace | None:
        """What `node` last waited for in `phase`, before `until`: a child, or a streamed item."""
        if phase.doing == "children":
            return self._child_ended(node, phase.begun, until)
        if phase.doing == "work":
            return self._item_ended(node, phase.begun, until)
        return None

    def all_waited_for(self, node: NodeTrace, phase: TracePhase, until: Moment) -> list[NodeTrace]:
        """All that `node` waited for in `phase`, before `until`: children or streamed items."""
        scopes = [node] if phase.doing == "children" else self._streams_into(node, phase.begun)
        ended = [
            self.nodes[child]
            for scope in scopes
            for _, child in scope.ended_between(phase.begun, until)
        ]
        return [child for child in ended if not child.cancelled] or ended

    def _child_ended(self, node: NodeTrace, after: Moment, before: Moment) -> NodeTrace | None:
        """The child of `node` that ended last between the two moments."""
        latest: NodeTrace | None = None
        for moment, child in reversed(node.ended_between(after, before)):
            if latest is not None and moment.at_s < latest.end_rank[0]:
                break
            if latest is None or self.nodes[child].end_rank > latest.end_rank:
                latest = self.nodes[child]
        return latest

    def _item_ended(self, node: NodeTrace, after: Moment, before: Moment) -> NodeTrace | None:
        """The last streamed item that `node`, at work between the two moments, received."""
        items = (
            self._child_ended(source, after, before) for source in self._streams_into(node, after)
        )
        return max(filter(None, items), key=lambda item: item.end_rank, default=None)

    def _streams_into(self, node: NodeTrace, began: Moment) -> list[NodeTrace]:
        """The sources that had appended their items but not ended when `node` began to work."""
        return [
            source
            for source in map(self.nodes.get, node.info.sources)
            if source is not None
            and source.grew is not None
            and source.grew < began
            and (source.ended is None or source.ended > began)
        ]

    def busy_s(self, node: NodeTrace) -> float:
        """Seconds of the node's own work, in all attempts.

        While items stream in, waiting and working look the same, so only the time after the last
        item counts: the sum over all nodes never exceeds the parallel work that was done.
        """
        total = 0.0
        for phase in node.phases:
            until = phase.ended or self.now
            waited = self.waited_for(node, phase, until)
            if waited is not None and waited.ended is not None:
                total += until.at_s - waited.ended.at_s
            elif phase.doing == "work":
                total += phase.seconds(until.at_s)
        return total

    def all_busy_s(self) -> float:
        """The sum of all nodes' own work: the duration of the run without parallelism."""
        return sum(map(self.busy_s, self.nodes.values()))

    def speed_up(self) -> float | None:
        """The duration of the run's work one after another, divided by that of the run.

        None where that says nothing: no two nodes worked at once, the run waited longer than they
        worked in parallel, or its times are those of several parts.
        """
        if self.parts > 1 or self.max_running < 2 or self.wall_s <= 0:
            return None
        found = self.all_busy_s() / self.wall_s
        return found if round(found, 1) > 1 else None


def _note_answer(node: NodeTrace, event: NodeDecoded | NodeDenoised | NodeRepairing) -> None:
    match event:
        case NodeDecoded(speculated=how) | NodeDenoised(denoised=how):
            node.decoded.append(how)
        case NodeRepairing():
            node.repairs += 1
