"""Which nodes of a growing graph have their inputs. Starts nothing, ends nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from weft.core.errors import CycleError, Failure, InternalError
from weft.core.ids import NodeId
from weft.engine.graph.join import DECIDED_EARLY, JoinCount, Verdict
from weft.engine.graph.node import Edge, Inputs, Join, Node, NodeContext, Policy
from weft.engine.scheduler.resume_state import RestoredChild, ResumeState
from weft.engine.scheduler.state import NodePhase, NodeState

_PENDING = NodePhase.PENDING
READY = Verdict()
LEFT_OUT = Verdict(left_out=True)
Decide = Callable[[NodeState, Verdict], None]


class Frontier:
    """All node states of a run, and the edges between them.

    `work` is the weight of the nodes that spend tokens or money and have not ended.

    `add`, `decide`, `ended` and `grew` call `decide` for each pending node whose inputs they
    decide, once, with the verdict.
    """

    def __init__(self, recall: ResumeState | None, decide: Decide) -> None:
        self.states: dict[NodeId, NodeState] = {}
        self.work = 0.0
        self._recall = recall
        self._decide = decide

    def add(
        self, nodes: Sequence[Node], ranks: Mapping[NodeId, float], parent: NodeState | None
    ) -> None:
        """Add checked `nodes`."""
        added = self.enter(nodes, ranks, parent)
        # Connect all before the first is decided: that may cancel others, or need them.
        self.decide(added, [self.connect(state) for state in added])

    def enter(
        self, nodes: Sequence[Node], ranks: Mapping[NodeId, float], parent: NodeState | None
    ) -> list[NodeState]:
        """Make the states of checked `nodes`, unconnected and not ready."""
        states = self.states
        added = []
        for node in nodes:
            state = NodeState(node, len(states), ranks[node.id], parent)
            states[node.id] = state
            added.append(state)
            if node.policy.spends:
                self.work += node.policy.weight
        if parent is not None:
            parent.open += len(added)
            if parent.children is None:
                parent.children = list(added)
            else:
                parent.children += added
        return added

    def decide(self, added: Sequence[NodeState], arrived: Sequence[Sequence[NodeState]]) -> None:
        """Decide those of the `added`, connected nodes that have enough: `arrived` for each."""
        for state, sources in zip(added, arrived, strict=True):
            if state.missing == 0 and state.phase is _PENDING:
                self._decide(state, READY)
            for source in sources:
                self._arrive(state, source)

    def connect(self, state: NodeState) -> Sequence[NodeState]:
        """Connect `state` to its inputs; return those that have ended already."""
        edges: Collection[Edge] = state.node.edges
        if not edges:
            return ()
        if state.node.join.mode != "all":
            edges = {edge.source: edge for edge in edges}.values()  # a branch counts once
            sources = [edge.source for edge in edges]
            state.count = self.count(state.node.id, state.node.join, sources)
        state.missing = len(edges)
        arrived: list[NodeState] = []
        for edge in edges:
            source = self.states[edge.source]
            if source.outcome is not None:
                arrived.append(source)
            elif not edge.stream:
                if source.dependents is None:
                    source.dependents = []
                source.dependents.append(state)
            elif source.streams:
                state.missing -= 1
            else:
                if source.watchers is None:
                    source.watchers = []
                source.watchers.append(state)
        return arrived

    def restore(self, ended: Iterable[RestoredChild]) -> None:
        """Add ended nodes of an earlier part, inside others that exist."""
        for within in ended:
            node = within.info.id
            self.states[node] = _restored(within, self.states)

    def count(self, node: NodeId, join: Join, sources: Sequence[NodeId]) -> JoinCount:
        """The count of a join of `node`; one decided in an earlier part has the same winners."""
        if self._recall is None or join.mode not in DECIDED_EARLY:
            return JoinCount(join, sources)
        return JoinCount(join, sources, self._recall.winners(node, sources))

    def ended(self, source: NodeState) -> None:
        """Pass on the outcome of `source`."""
        policy = source.node.policy
        if policy.spends:
            self.work -= policy.weight
        if source.dependents is not None:
            value = source.outcome is not None and source.outcome.status == "succeeded"
            for waiting in source.dependents:
                if not value or waiting.count is not None:
                    self._arrive(waiting, source)
                elif waiting.phase is _PENDING:
                    self._met(waiting)
        if source.watchers is not None and not source.streams:
            for waiting in source.watchers:
                self._arrive(waiting, source)

    def grew(self, source: NodeState) -> None:
        """Pass on that `source` has appended its items."""
        if source.watchers is not None and source.streams:
            for waiting in source.watchers:
                self._met(waiting)

    def _arrive(self, waiting: NodeState, source: NodeState) -> None:
        outcome = source.outcome
        if waiting.phase is not _PENDING or outcome is None:
            return
        if waiting.count is not None:
            verdict = waiting.count.arrive(source.node.id, outcome)
            if verdict is not None:
                self._decide(waiting, verdict)
        elif outcome.status == "succeeded":
            self._met(waiting)
        elif outcome.failure is None:
            # Left out only when all have ended: a failure counts more, in any order.
            waiting.left_out = waiting.left_out or not _is_optional(waiting.node, source.node.id)
            self._met(waiting)
        else:
            self._decide(waiting, Verdict(failure=_upstream(source)))

    def _met(self, waiting: NodeState) -> None:
        waiting.missing -= 1
        if waiting.missing == 0 and waiting.phase is _PENDING:
            self._decide(waiting, LEFT_OUT if waiting.left_out else READY)

    def refuse_deadlock(self, nodes: Sequence[Node], parent: NodeState) -> None:
        """Raise `CycleError` when `nodes` would wait for what must wait for `parent`."""
        sources = {edge.source: None for node in nodes for edge in node.edges}
        existing = [self.states[source] for source in sources if source in self.states]
        if existing:
            self.refuse_waiting(parent, existing)

    def refuse_waiting(self, waiting: NodeState, sources: list[NodeState]) -> None:
        """Raise `CycleError` when a source cannot end before `waiting`, or a scope of it, has."""
        scopes, scope = {waiting}, waiting
        while scope.parent is not None:
            scope = scope.parent
            scopes.add(scope)
        seen: set[NodeState] = set()
        doubtful = list(sources)
        while doubtful:
            state = doubtful.pop()
            if state in scopes:
                raise CycleError(
                    f"{state.node.id!r} and what it is to wait for wait for each other",
                    node=state.node.id,
                    hint="wait for nodes that do not depend on it",
                )
            # A child of `waiting` was checked when it was added.
            done = state.phase is NodePhase.ENDED or state.parent is waiting
            if not done and state not in seen:
                seen.add(state)
                doubtful += self.sources(state) if state.phase is NodePhase.PENDING else ()
                doubtful += state.children or ()
                doubtful += state.awaited or ()

    def sources(self, state: NodeState) -> list[NodeState]:
        """The nodes from which `state` takes its inputs."""
        return [self.states[edge.source] for edge in state.node.edges]


def _is_optional(node: Node, source: NodeId) -> bool:
    """Whether `node` can do without `source`, on all edges from it."""
    return all(edge.optional for edge in node.edges if edge.source == source)


def _restored(within: RestoredChild, states: Mapping[NodeId, NodeState]) -> NodeState:
    info, outcome = within.info, within.outcome
    edges = tuple(Edge(source) for source in info.sources if source in states)
    policy = Policy(on_failure="skip" if info.may_fail else "fail")
    join = Join(info.join, info.quorum)
    parent = None if info.parent is None else states[info.parent]
    rank = 0.0 if parent is None else parent.rank
    node = Node(info.id, _over, edges, join=join, policy=policy, kind=info.kind)
    state = NodeState(node, len(states), rank, parent)
    if join.mode != "all":
        state.count = JoinCount(join, info.sources)
    state.phase, state.outcome, state.born = NodePhase.ENDED, outcome, within.born
    state.attempt, state.via = outcome.attempts, outcome.via
    state.tolerated, state.by_name = within.tolerated, within.by_name
    if parent is not None:
        parent.children = parent.children or []
        parent.children.append(state)
    return state


async def _over(context: NodeContext, _: Inputs) -> Any:
    raise InternalError("it had ended in an earlier part of the run", node=context.node)


def needed(state: NodeState, besides: NodeState) -> bool:
    """Whether a node other than `besides` still waits for `state`."""
    growth = state.parent.growth if state.parent is not None else None
    if growth is not None and not growth.decided and state.node.id in growth.count.sources:
        return True
    waiting = [*(state.dependents or ()), *(state.watchers or ())]
    return any(other is not besides and other.phase is not NodePhase.ENDED for other in waiting)


def _upstream(source: NodeState) -> Failure | None:
    outcome = source.outcome
    if outcome is None or outcome.status == "skipped":
        return outcome.failure if outcome is not None else None
    why = "failed" if outcome.status == "failed" else "was cancelled"
    return Failure("Upstream", f"needs {source.node.id}, which {why}")
