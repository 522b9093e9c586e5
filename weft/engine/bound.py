"""What a run would have needed at least, had some of its nodes taken no time.

A longest path over what was recorded: every node as long as it was, no waiting for slots. It does
not replay the run; with fewer slots than nodes the run would have needed more.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.ids import NodeId
from weft.engine.critical import family
from weft.engine.trace import Moment, NodeTrace, Phase, Trace


def least_wall_s(trace: Trace, free: str = "") -> float:
    """Seconds to the last end, if the own work of the nodes of family `free` took no time.

    Without slots in short supply, and with nothing free, this is the run's wall time. Cost: linear
    in nodes and edges, but for sorting.
    """
    return _Bound(trace, free).seconds()


class _Bound:
    """Walks through the run in order. `_at`: when each node is where it is, at the earliest."""

    def __init__(self, trace: Trace, free: str) -> None:
        self._trace = trace
        self._free = free
        self._at: dict[NodeId, float] = {}
        self._born: dict[NodeId, float] = {}
        self._grew: dict[NodeId, float] = {}

    def seconds(self) -> float:
        """The latest of all earliest ends."""
        for moment, node, phase in sorted(self._steps(), key=lambda step: step[0]):
            if phase is not None:
                self._go_through(node, phase)
            elif moment == node.born:
                self._be_born(node)
            else:
                self._at[node.info.id] = self._start(node, moment)
        return max(self._at.values(), default=0.0)

    def _steps(self) -> Iterator[tuple[Moment, NodeTrace, Phase | None]]:
        """Births, ends of phases, and the ends of nodes that never worked."""
        for node in self._trace.nodes.values():
            yield node.born, node, None
            for phase in node.phases:
                yield phase.ended or self._trace.now, node, phase
            if node.ended is not None and not node.phases:
                yield node.ended, node, None

    def _be_born(self, node: NodeTrace) -> None:
        parent = None if node.info.parent is None else self._trace.nodes.get(node.info.parent)
        if parent is None:
            self._born[node.info.id] = 0.0
            return
        phase = next(phase for phase in reversed(parent.phases) if phase.begun < node.born)
        at_s = self._before(parent, phase)
        if phase.doing == "work":
            at_s += self._counted(parent, node.born.at_s - phase.begun.at_s)
        self._born[node.info.id] = at_s
        self._grew.setdefault(parent.info.id, at_s)

    def _before(self, node: NodeTrace, phase: Phase) -> float:
        """Where `node` is as `phase` begins."""
        known = self._at.get(node.info.id)
        return self._start(node, phase.begun) if known is None else known

    def _go_through(self, node: NodeTrace, phase: Phase) -> None:
        name = node.info.id
        at_s = self._before(node, phase)
        until = phase.ended or self._trace.now
        waited = self._trace.waited_for(node, phase, until)
        if waited is not None and waited.ended is not None:
            awaited = self._trace.all_waited_for(node, phase, until)
            at_s = max(at_s, *(self._at[other.info.id] for other in awaited))
            at_s += self._counted(node, until.at_s - waited.ended.at_s)
        elif phase.doing == "work":
            at_s += self._counted(node, phase.seconds(until.at_s))
        elif phase.doing == "delay":
            at_s += max(0.0, min(phase.until_s, until.at_s) - phase.begun.at_s)
        elif phase.doing == "person":
            at_s += phase.seconds(until.at_s)
        self._at[name] = at_s

    def _start(self, node: NodeTrace, began: Moment) -> float:
        """When `node`, which began then, had all it needed."""
        at_s = self._born[node.info.id]
        for source in node.info.sources:
            provider = self._trace.nodes.get(source)
            if provider is None or (provider.cancelled and node.phases):
                continue
            if provider.ended is not None and provider.ended < began:
                at_s = max(at_s, self._at.get(source, 0.0))
            elif provider.grew is not None and provider.grew < began:
                at_s = max(at_s, self._grew.get(source, 0.0))
        return at_s

    def _counted(self, node: NodeTrace, seconds: float) -> float:
        return 0.0 if family(node.info.id) == self._free else seconds
