"""What each node of a recorded run did, as steps that can be played again. Data only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from weft.core.errors import Failure
from weft.core.events import NodeInfo, RunMeasured
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine.graph.node import Join

CallKind = Literal["own", "tool", "model"]
_NONE = Usage()


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Seconds of one kind: the node's own code, or a call of the tool or model `name`."""

    kind: CallKind
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkStep:
    """The node's work ran for so long, in these stretches, from `begun_s` of the run on."""

    stretches: tuple[TimeSpan, ...]
    begun_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Their sum."""
        return sum(stretch.seconds for stretch in self.stretches)


@dataclass(frozen=True, slots=True)
class AppendStep:
    """The work appended nodes and went on."""

    nodes: tuple[NodeScript, ...]


@dataclass(frozen=True, slots=True)
class AwaitStep:
    """The work waited for the end of a node."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class ExpandStep:
    """The node appended `nodes`, gone through once, and paused until `results` were joined."""

    nodes: Iterable[NodeScript]
    results: tuple[NodeId, ...]
    join: Join
    width: int | None
    items: bool


@dataclass(frozen=True, slots=True)
class HumanStep:
    """The node waited so long for a person."""

    seconds: float


Step = WorkStep | AppendStep | AwaitStep | ExpandStep | HumanStep


@dataclass(slots=True)
class Attempt:
    """The steps of one attempt, and how it failed, if so."""

    steps: list[Step] = field(default_factory=list)
    failure: Failure | None = None


@dataclass(slots=True)
class NodeScript:
    """One node. `whole` is False for one that was cut off: its times are lower bounds.

    `rejects`: branches whose values its join for valid ones did not take. `skipped`: it left itself
    out on purpose. `default`: a default stood in for its failure. `fallback` ran in its place.
    """

    info: NodeInfo
    attempts: list[Attempt] = field(default_factory=list)
    whole: bool = False
    rejects: frozenset[NodeId] = frozenset()
    skipped: bool = False
    default: bool = False
    fallback: NodeScript | None = None
    retry_delay_s: float = 0.5
    usage: Usage = _NONE


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that can be played again: its nodes in declared order, limits, and what it came to.

    `every` are all its nodes, those appended on the way too. `ended`: it came to its own end; else
    what it had still to do is not in its times. `steps`: how often the scheduler took in that nodes
    had ended, one or several at once.
    """

    flow: str
    nodes: tuple[NodeScript, ...]
    limits: Mapping[str, int]
    wall_s: float
    every: Mapping[NodeId, NodeScript] = field(repr=False)
    ended: bool = True
    measured: RunMeasured | None = None
    steps: int = 0
