"""How nodes are appended: checked, within the run's limit, and many of them a slice at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence

from weft.core.errors import Failure, NodeLimit, RunError, WeftError, convert
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine.graph.content_digest import DigestTexts
from weft.engine.graph.graph import Graph, RunOptions, check_growth, checking, grew, ranking
from weft.engine.graph.join import Verdict
from weft.engine.graph.node import QUESTION, Expand, Node
from weft.engine.graph.slices import SLICE, finish, slices
from weft.engine.scheduler.effects import EffectLedger
from weft.engine.scheduler.resume_state import NO_HISTORY, ResumeState
from weft.engine.scheduler.state import ExpandState, NodePhase, NodeState
from weft.engine.scheduler.termination import NodeTermination

_Steps = Generator[None, None, None]
_Checking = Generator[None, None, dict[NodeId, float]]


class NodeExpansion(NodeTermination):
    """Appends nodes to the nodes of one run.

    Each step takes in a slice of a large expansion; none of its nodes starts before all are there.
    When the appending node ends or repeats, its expansion ends too.
    """

    def __init__(
        self, graph: Graph, options: RunOptions, recall: ResumeState | None, effects: EffectLedger
    ) -> None:
        super().__init__(graph, options, recall, effects)
        self._recall = recall
        self._expansions: deque[tuple[NodeState, int, _Steps]] = deque()
        self._max_nodes = options.max_nodes
        self.texts = DigestTexts()  # for the digests of the nodes

    @abstractmethod
    def _joined(self, state: NodeState, growth: ExpandState, verdict: Verdict) -> None:
        """Continue `state`: its children are enough, or can never be."""

    @abstractmethod
    def _end_as_before(
        self, state: NodeState, outcome: Outcome, digest: str = "", *, by_name: bool
    ) -> None:
        """End `state` with its outcome in an earlier part."""

    @abstractmethod
    def attempt_failed(self, state: NodeState, error: WeftError) -> None:
        """End one attempt with `error`."""

    def end_all(self, failure: Failure) -> None:
        """Cancel every node that has not ended, and every expansion."""
        self._expansions.clear()
        super().end_all(failure)

    def add(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        """Append `nodes` to `parent`. Raises `BuildError` or `RunError`, and then adds none."""
        self.check_room(parent, len(nodes))
        longest = finish(self._checked(parent, nodes))
        if not self.quiet:
            self.out.append(grew(parent.node.id, nodes, None, self.now))
        if not all(node.kind == QUESTION for node in nodes):
            self._effects.decides(parent.node.id)
        added = self._enter(parent, nodes, longest)
        self.frontier.decide(added, [self.frontier.connect(each) for each in added])

    def check_room(self, parent: NodeState, count: int) -> None:
        """Raise `NodeLimit` when the run may not have the `count` more nodes of `parent`.

        Raises: `RunError` once the run has ended.
        """
        if self.run_ended:
            raise RunError("the run has ended", node=parent.node.id)
        if self._max_nodes is None or len(self.states) + count <= self._max_nodes:
            return
        raise NodeLimit(
            f"it expands into {count:,} nodes, the run has {len(self.states):,}, and may have no "
            f"more than {self._max_nodes:,}",
            node=parent.node.id,
            hint="give it fewer items or rounds, or raise the limit (run: {max_nodes: N})",
        )

    def _checked(self, parent: NodeState, nodes: Sequence[Node]) -> _Checking:
        """The ranks of `nodes`, checked as children of `parent`; changes nothing."""
        order = yield from checking(nodes, self.states)
        self.frontier.refuse_deadlock(nodes, parent)
        return (yield from ranking(nodes, order, parent.rank))

    def _enter(
        self, parent: NodeState, nodes: Sequence[Node], longest: Mapping[NodeId, float]
    ) -> list[NodeState]:
        self.open += len(nodes)
        self._left -= len(nodes)
        added = self.frontier.enter(nodes, longest, parent)
        self._cancel_early(nodes)
        return added

    def _cancel_early(self, nodes: Iterable[Node]) -> None:
        """End those of the added `nodes` that had been cancelled by name before they started."""
        if self._recall is None or self._recall is NO_HISTORY:
            return
        for node in nodes:
            state, end = self.states[node.id], self._recall.called_off(node.id)
            if end is not None and state.phase is not NodePhase.ENDED:
                self._end_as_before(state, end, by_name=True)

    def _begin_expansion(self, state: NodeState, grow: Expand) -> None:
        if (unknown := self._unknown_inside(state)) is not None:
            self.attempt_failed(state, unknown)
            return
        if state.via:
            self._effects.decides(state.node.id)
        self._expansions.append((state, state.epoch, self._expand(state, grow)))
        if len(self._expansions) == 1:
            self._expand_on()

    def _expand_on(self) -> None:
        """Continue the expansions, one after another, as far as this step allows.

        An expansion whose node has ended or been repeated meanwhile is dropped.
        """
        while self._expansions:
            state, epoch, steps = self._expansions[0]
            while state.epoch == epoch:
                try:
                    next(steps)
                except StopIteration:
                    break
                self._left -= SLICE
                if self._left <= 0:
                    return
            self._expansions.popleft()
            if self._left <= 0:
                return

    def _expand(self, state: NodeState, grow: Expand) -> _Steps:
        """Take in what `state` appends. None of it starts before all of it is there."""
        try:
            self.check_room(state, len(grow.nodes))
            longest = yield from self._checked(state, grow.nodes)
            check_growth(grow, state.node.id)
            self.check_room(state, len(grow.nodes))
            growth = ExpandState(grow, self.frontier.count(state.node.id, grow.join, grow.results))
        except Exception as error:  # noqa: BLE001 - a node function may return anything
            self.attempt_failed(state, convert(error, state.node.id))
            return
        state.growth = growth
        added: list[NodeState] = []
        for part in slices(grow.nodes):
            if not self.quiet:
                self.out.append(grew(state.node.id, part, grow, self.now, len(added)))
            added += self._enter(state, part, longest)
            if len(part) < len(grow.nodes):
                yield
        yield from self._connect(added)
        self.frontier.grew(state)
        verdict = growth.count.start()
        if verdict is not None:
            self._joined(state, growth, verdict)

    def _connect(self, added: Sequence[NodeState]) -> _Steps:
        """Connect added nodes to their inputs; those that lack none start."""
        arrived: list[Sequence[NodeState]] = []
        for part in slices(added):
            arrived += [self.frontier.connect(state) for state in part]
            if len(part) < len(added):
                yield
        start = 0
        for part in slices(added):
            self.frontier.decide(part, arrived[start : start + len(part)])
            start += len(part)
            if len(part) < len(added):
                yield
