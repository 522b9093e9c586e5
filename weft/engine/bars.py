"""What a node did, as bars on a scale of time: for every page that draws a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from weft.engine.critical import released_by
from weft.engine.trace import Doing, NodeTrace, Phase, Trace

BarDoing = Doing | Literal["slot", "failed"]


class Bar(NamedTuple):
    """A stretch of time. "failed": work of an attempt that came to nothing; "slot": a wait for one.

    The rest is as in `Phase`, but work after the last child is work.
    """

    doing: BarDoing
    start_s: float
    end_s: float


def bars(trace: Trace, node: NodeTrace) -> tuple[Bar, ...]:
    """Everything that `node` did, in order, waiting for slots included."""
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


def _of_phase(trace: Trace, node: NodeTrace, phase: Phase) -> Iterator[Bar]:
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
