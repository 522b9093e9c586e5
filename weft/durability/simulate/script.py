"""The steps of each node of a recorded run, which can be played again. Data only."""

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
    """The node's function ran, in these stretches, from `begun_s` of the run on."""

    stretches: tuple[TimeSpan, ...]
    begun_s: float = 0.0

    @property
    def seconds(self) -> float:
        """The sum of the stretches."""
        return sum(stretch.seconds for stretch in self.stretches)


@dataclass(frozen=True, slots=True)
class AppendStep:
    """The node's function appended nodes and continued."""

    nodes: tuple[NodeScript, ...]


@dataclass(frozen=True, slots=True)
class AwaitStep:
    """The node's function waited for the end of `node`."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class ExpandStep:
    """The node appended `nodes`, iterated once, and paused until `results` were joined."""

    nodes: Iterable[NodeScript]
    results: tuple[NodeId, ...]
    join: Join
    width: int | None
    items: bool


@dataclass(frozen=True, slots=True)
class HumanStep:
    """The node waited for a person."""

    seconds: float


Step = WorkStep | AppendStep | AwaitStep | ExpandStep | HumanStep


@dataclass(slots=True)
class Attempt:
    """The steps of one attempt, and its failure, if any."""

    steps: list[Step] = field(default_factory=list)
    failure: Failure | None = None


@dataclass(slots=True)
class NodeScript:
    """The script of one node. `whole` is false if it was cut off: its times are lower bounds.

    `rejects`: branches whose values its `first_valid` join did not accept. `skipped`: it left
    itself out on purpose. `default`: a default replaced its failure. `fallback` ran in its place.
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
    """A run that can be played again: its nodes in declared order, its limits and its end.

    `every`: all its nodes, appended ones too. `ended`: it was not cut off; otherwise its times lack
    the work that was left. `steps`: the scheduling steps in which nodes had ended.
    """

    flow: str
    nodes: tuple[NodeScript, ...]
    limits: Mapping[str, int]
    wall_s: float
    every: Mapping[NodeId, NodeScript] = field(repr=False)
    ended: bool = True
    measured: RunMeasured | None = None
    steps: int = 0
