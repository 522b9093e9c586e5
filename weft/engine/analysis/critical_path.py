"""The chain of work and waiting that decided how long a run took, and what to speed up first.

Computed from a trace as it was recorded; `weft.durability.simulate` replays runs under other
conditions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal, NamedTuple

from weft.core.ids import NodeId
from weft.engine.analysis.trace import Doing, Moment, NodeTrace, Trace, TracePhase

_INDEX = re.compile(r"\[\d+\]")
_ROUND = re.compile(r"#\d+")
_ATTEMPT = re.compile(r"~\d+")
_OPEN_END = 2**63

PathDoing = Doing | Literal["slot"]


@dataclass(frozen=True, slots=True)
class PathSegment:
    """A segment of the critical path: what `node` did from `start_s` to `end_s`.

    "slot": it was ready, and waited for a free slot.
    """

    node: NodeId
    doing: PathDoing
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """The length of the segment."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class PathShare:
    """The part of the critical path that one family of nodes, or one resource, takes.

    For "work", "delay" and "person", `target` is the node's family (see `family`), for "slot" the
    resource class ("" for the general limit). `fraction` is of the run's wall time.
    """

    doing: PathDoing
    target: str
    seconds: float
    fraction: float


def family(node: NodeId) -> str:
    """The node as the program names it: `notes[3]/draft` is one of `notes[*]/draft`."""
    if node.isidentifier():
        return node
    return _ATTEMPT.sub("", _ROUND.sub("#*", _INDEX.sub("[*]", node)))


def critical_path(trace: Trace, now_s: float | None = None) -> tuple[PathSegment, ...]:
    """The segments of the critical path in order of time, without gaps, from 0 to the last end.

    Starts at the node that ended last (in an unfinished run: the one at work longest, until
    `now_s`) and walks back to what released it last: an input, a child, or the parent that
    appended it. Cost: linear in the length of the path and the inputs along it.
    """
    now = Moment(_OPEN_END, trace.wall_s if now_s is None else now_s)
    place = _last(trace, now)
    segments: list[PathSegment] = []
    while place is not None:
        node, until = place
        place = _walk(trace, trace.nodes[node], until, segments)
    segments.reverse()
    return tuple(segments)


def path_nodes(segments: Sequence[PathSegment]) -> tuple[tuple[NodeId, float], ...]:
    """The nodes of a critical path with their seconds; consecutive segments of a node are one."""
    runs = groupby(segments, key=lambda segment: segment.node)
    return tuple((node, sum(segment.seconds for segment in run)) for node, run in runs)


def shares(trace: Trace, path: Sequence[PathSegment]) -> tuple[PathShare, ...]:
    """The critical path by family and by kind of waiting, largest share first."""
    wall_s = trace.wall_s
    if wall_s <= 0:
        return ()
    seconds: defaultdict[tuple[PathDoing, str], float] = defaultdict(float)
    for segment in path:
        target = family(segment.node)
        if segment.doing == "slot":
            resource = trace.nodes[segment.node].info.resource
            target = resource if resource in trace.limits and resource is not None else ""
        seconds[segment.doing, target] += segment.seconds
    found = [
        PathShare(doing, target, spent, spent / wall_s)
        for (doing, target), spent in seconds.items()
        if doing != "children"
    ]
    return tuple(sorted(found, key=lambda share: -share.seconds))


def _last(trace: Trace, now: Moment) -> tuple[NodeId, Moment] | None:
    for node in trace.active:
        return node, now
    if trace.last_ended is None:
        return None
    ended = trace.nodes[trace.last_ended].ended
    return None if ended is None else (trace.last_ended, ended)


def _walk(
    trace: Trace, node: NodeTrace, until: Moment, segments: list[PathSegment]
) -> tuple[NodeId, Moment] | None:
    """Add what `node` did before `until`, latest first; return what it had waited for, and when."""
    for phase in reversed(node.phases):
        if phase.begun.seq >= until.seq:
            continue
        ended = until if phase.ended is None or phase.ended.seq > until.seq else phase.ended
        waited = trace.waited_for(node, phase, ended)
        if waited is not None and waited.ended is not None:
            _add(segments, node, "work", waited.ended.at_s, ended.at_s)
            return waited.info.id, waited.ended
        if phase.doing == "delay":
            due_s = min(ended.at_s, phase.until_s)
            _add(segments, node, "slot", due_s, ended.at_s)
            _add(segments, node, "delay", phase.begun.at_s, due_s)
        else:
            _add(segments, node, phase.doing, phase.begun.at_s, ended.at_s)
        until = phase.begun
    released, provider = released_by(trace, node, until)
    _add(segments, node, "slot", released.at_s, until.at_s)
    return None if provider is None else (provider, released)


def released_by(trace: Trace, node: NodeTrace, started: Moment) -> tuple[Moment, NodeId | None]:
    """When `node`, which started at `started`, was ready, and the provider of its last input.

    None: the start of the run.
    """
    parent = node.info.parent
    latest = node.born.at_s, True, node.born.seq
    provider = parent if parent in trace.nodes else None
    for source in map(trace.nodes.get, node.info.sources):
        if source is None:
            continue
        if source.ended is not None and source.ended < started:
            rank = source.end_rank
        elif source.grew is not None and source.grew < started:
            rank = source.grew.at_s, True, source.grew.seq
        else:
            continue
        if rank > latest:
            latest, provider = rank, source.info.id
    return Moment(latest[2], latest[0]), provider


def _add(
    segments: list[PathSegment], node: NodeTrace, doing: PathDoing, start_s: float, end_s: float
) -> None:
    if end_s > start_s:
        segments.append(PathSegment(node.info.id, doing, start_s, end_s))


BarDoing = Doing | Literal["slot", "failed"]


class Bar(NamedTuple):
    """A stretch of time of a node. "failed": work of a failed attempt; "slot": a wait for a slot.

    Otherwise as in `TracePhase`, but work after the last child counts as work.
    """

    doing: BarDoing
    start_s: float
    end_s: float


def bars(trace: Trace, node: NodeTrace) -> tuple[Bar, ...]:
    """All that `node` did, in order, with its waits for slots."""
    began = node.phases[0].begun if node.phases else node.ended
    if began is None:
        return ()
    found: list[Bar] = []
    if node.phases:
        ready, _ = released_by(trace, node, began)
        found.append(Bar("slot", ready.at_s, began.at_s))
    for phase in node.phases:
        found += _of_phase(trace, node, phase)
    return tuple(bar for bar in found if bar.end_s > bar.start_s)


def _of_phase(trace: Trace, node: NodeTrace, phase: TracePhase) -> Iterator[Bar]:
    until = phase.ended or trace.now
    start_s, end_s = phase.begun.at_s, until.at_s
    work: BarDoing = "failed" if phase.failed else "work"
    if phase.doing == "delay":
        due_s = min(phase.until_s, end_s)
        yield Bar("delay", start_s, due_s)
        yield Bar("slot", due_s, end_s)
    elif phase.doing == "children":
        child = trace.waited_for(node, phase, until)
        resumed_s = end_s if child is None or child.ended is None else child.ended.at_s
        yield Bar("children", start_s, resumed_s)
        yield Bar(work, resumed_s, end_s)
    else:
        yield Bar(work if phase.doing == "work" else phase.doing, start_s, end_s)


def least_wall_s(trace: Trace, free: str = "") -> float:
    """Seconds to the last end, if the own work of the nodes of family `free` took no time.

    With enough slots and nothing free, this is the run's wall time. Cost: linear in nodes and
    edges, apart from sorting.
    """
    return _Bound(trace, free).seconds()


class _Bound:
    """Walks through the run in order. `_at`: the earliest time of each node's current position."""

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
                self._pass_phase(node, phase)
            elif moment == node.born:
                self._append(node)
            else:
                self._at[node.info.id] = self._start(node, moment)
        return max(self._at.values(), default=0.0)

    def _steps(self) -> Iterator[tuple[Moment, NodeTrace, TracePhase | None]]:
        """Births, ends of phases, and the ends of nodes that never worked."""
        for node in self._trace.nodes.values():
            yield node.born, node, None
            for phase in node.phases:
                yield phase.ended or self._trace.now, node, phase
            if node.ended is not None and not node.phases:
                yield node.ended, node, None

    def _append(self, node: NodeTrace) -> None:
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

    def _before(self, node: NodeTrace, phase: TracePhase) -> float:
        """The earliest time at which `phase` of `node` begins."""
        known = self._at.get(node.info.id)
        return self._start(node, phase.begun) if known is None else known

    def _pass_phase(self, node: NodeTrace, phase: TracePhase) -> None:
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
        """The earliest time at which `node`, which began at `began`, was ready."""
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


WORTH_A_WORD = 0.05
"""The least part of the wall time that is worth reporting."""
_MOST_TRIED = 10


@dataclass(frozen=True, slots=True)
class SpeedAdvice:
    """What the run would save if the nodes of the family `target` took no time.

    `fraction` is of the wall time; `at_least_s` is what the run would still need.
    """

    target: str
    saves_s: float
    fraction: float
    at_least_s: float


def speed_advice(trace: Trace, found: Sequence[PathShare]) -> SpeedAdvice | None:
    """The family of nodes, of the shares `found`, that would save most.

    None where no family would save a twentieth, or one would save almost the whole run.
    """
    if sum(trace.busy_s(node) > 0 for node in trace.nodes.values()) < 2:
        return None
    worth = (s for s in found if s.doing == "work" and s.fraction >= WORTH_A_WORD)
    tried = [_advice(trace, share) for share in islice(worth, _MOST_TRIED)]
    best = max(tried, key=lambda advice: advice.saves_s, default=None)
    if best is None or not WORTH_A_WORD <= best.fraction <= 1 - WORTH_A_WORD:
        return None
    return best


def _advice(trace: Trace, share: PathShare) -> SpeedAdvice:
    at_least_s = least_wall_s(trace, share.target)
    saves_s = max(0.0, min(share.seconds, trace.wall_s - at_least_s))
    return SpeedAdvice(share.target, saves_s, saves_s / trace.wall_s, at_least_s)
