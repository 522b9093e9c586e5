"""The chain of work and waiting that decided how long a run took, and what to speed up first.

Computed from a trace as it was recorded; it does not replay the run under other conditions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.core.ids import NodeId
from weft.engine.trace import Doing, Moment, NodeTrace, Trace

_INDEX = re.compile(r"\[\d+\]")
_ROUND = re.compile(r"#\d+")
_ATTEMPT = re.compile(r"~\d+")
_OPEN_END = 2**63

PathDoing = Doing | Literal["slot"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the critical path: what `node` did from `start_s` to `end_s`.

    "slot": it could have gone on, and waited for a free slot.
    """

    node: NodeId
    doing: PathDoing
    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Share:
    """Part of the critical path, with what is the same code taken together.

    For "work", "delay" and "person", `target` is the node's family (see `family`), for "slot" the
    resource class ("" for the general limit). `fraction` is of the run's wall time.
    """

    doing: PathDoing
    target: str
    seconds: float
    fraction: float


def family(node: NodeId) -> str:
    """The node as it is written in the program: `notes[3]/draft` is one of `notes[*]/draft`."""
    if node.isidentifier():
        return node
    return _ATTEMPT.sub("", _ROUND.sub("#*", _INDEX.sub("[*]", node)))


def critical_path(trace: Trace, now_s: float | None = None) -> tuple[Segment, ...]:
    """The segments of the critical path in order of time, without gaps, from 0 to the last end.

    Starts at the node that ended last (in a run under way: the one that has been at it longest,
    until `now_s`) and walks back to what released it last: an input, a child, or the parent that
    appended it. Cost: linear in the length of the path and the inputs along it.
    """
    now = Moment(_OPEN_END, trace.wall_s if now_s is None else now_s)
    place = _last(trace, now)
    segments: list[Segment] = []
    while place is not None:
        node, until = place
        place = _walk(trace, trace.nodes[node], until, segments)
    segments.reverse()
    return tuple(segments)


def shares(trace: Trace, path: Sequence[Segment]) -> tuple[Share, ...]:
    """The critical path by family and by kind of waiting, largest first."""
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
        Share(doing, target, spent, spent / wall_s)
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
    trace: Trace, node: NodeTrace, until: Moment, segments: list[Segment]
) -> tuple[NodeId, Moment] | None:
    """Add what `node` did before `until`, latest first; return whom it had waited for, and when."""
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
    """When `node`, which started then, had all it needed, and who provided the last of it.

    None: the run itself, by starting.
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
    segments: list[Segment], node: NodeTrace, doing: PathDoing, start_s: float, end_s: float
) -> None:
    if end_s > start_s:
        segments.append(Segment(node.info.id, doing, start_s, end_s))
