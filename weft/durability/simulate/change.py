"""What is different in a simulated run: slots, speeds, failures, chance; and the times that
follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random

from weft.core.ids import NodeId
from weft.durability.simulate.script import CallKind, NodeScript, TimeSpan, WorkStep
from weft.engine.analysis.critical_path import family


@dataclass(frozen=True, slots=True)
class Scale:
    """Times of what `pattern` names become `factor` times as long, or `seconds` (a constant).

    A pattern is `tool.NAME`, `model.NAME`, `node.FAMILY` or `own.FAMILY` (a node's own code), with
    `*` and `?`; `notes[*]` is the family of `notes[3]`.
    """

    pattern: str
    factor: float = 1.0
    seconds: float | None = None

    @property
    def is_of_nodes(self) -> bool:
        """Whether it names nodes, and not what they call."""
        return self.pattern.startswith(("node.", "own."))

    def of(self, seconds: float) -> float:
        """The time that `seconds` becomes."""
        return self.seconds if self.seconds is not None else seconds * self.factor


@dataclass(frozen=True, slots=True)
class Fault:
    """Each attempt of a node that `name` fits fails with `probability`: a family, tool or model."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Change:
    """A what-if. Nothing given: the run as it was recorded.

    workers    at most so many nodes at once; None: as recorded, 0: no limit
    limits     slots of resource classes that differ; 0: no limit
    scales     times that differ; the last that fits counts
    faults     attempts that fail
    resample   each time is drawn from those that the same code took, instead of its own
    seed       of all draws
    """

    workers: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ()
    faults: tuple[Fault, ...] = ()
    resample: bool = False
    seed: int = 0

    def slots(self, recorded: Mapping[str, int]) -> tuple[int | None, dict[str, int]]:
        """The general limit and those of resource classes."""
        limits = {**recorded, **self.limits}
        general = limits.pop("", None)
        if self.workers is not None:
            general = self.workers
        return general or None, {name: limit for name, limit in limits.items() if limit}

    def seconds(self, node: NodeId, stretches: Sequence[TimeSpan]) -> float:
        """How long `stretches` of `node`, one after another, take."""
        if not self.scales:
            return sum([stretch.seconds for stretch in stretches])
        told_s: dict[Scale, float] = {}
        total_s = 0.0
        for stretch in stretches:
            scale = self._scale(family(node), stretch)
            if scale is None:
                total_s += stretch.seconds
            elif scale.seconds is None or not scale.is_of_nodes:
                total_s += scale.of(stretch.seconds)
            else:
                told_s[scale] = scale.seconds  # once for all that a node does
        return total_s + sum(told_s.values())

    def _scale(self, own: str, stretch: TimeSpan) -> Scale | None:
        names = (f"node.{own}", f"own.{own}" if stretch.kind == "own" else _named(stretch))
        for scale in reversed(self.scales):
            if any(_fits(name, scale.pattern) for name in names):
                return scale
        return None

    def fails(self, node: NodeId, attempt: int, work: WorkStep | None) -> bool:
        """Whether an attempt of `node`, which begins with `work`, fails; always the same draw."""
        if not self.faults:
            return False
        names = {family(node)}
        if work is not None:
            names |= {one.name for one in work.stretches if one.kind != "own"}
        chance = 1.0
        for fault in self.faults:
            if any(_fits(name, fault.name) for name in names):
                chance *= 1.0 - fault.probability
        draw = Random(f"{self.seed}:fault:{node}:{attempt}").random()  # noqa: S311 - a simulation
        return draw >= chance


def _named(stretch: TimeSpan) -> str:
    return f"{stretch.kind}.{stretch.name}"


def _fits(name: str, pattern: str) -> bool:
    """`fnmatch`, where brackets are only brackets: they are part of the names of families."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


_FEWEST = 3
_Alike = tuple[CallKind, str, str]


class SimulatedTimes:
    """The times of one simulated run. Those of the same tool, model or family are alike."""

    def __init__(self, scripts: Iterable[NodeScript], change: Change) -> None:
        self._change = change
        self._random = Random(change.seed)  # noqa: S311 - a simulation
        self._alike: defaultdict[_Alike, list[float]] = defaultdict(list)
        if change.resample:
            for script in scripts:
                for attempt in script.attempts:
                    for step in attempt.steps:
                        if isinstance(step, WorkStep):
                            self._learn(script.info.id, step)

    def of(self, node: NodeId, work: WorkStep) -> float:
        """Seconds that `work` of `node` takes."""
        drawn = work.stretches
        if self._change.resample:
            drawn = tuple(self._drawn(node, stretch) for stretch in drawn)
        return self._change.seconds(node, drawn)

    def _learn(self, node: NodeId, work: WorkStep) -> None:
        for stretch in work.stretches:
            self._alike[_alike(node, stretch)].append(stretch.seconds)

    def _drawn(self, node: NodeId, stretch: TimeSpan) -> TimeSpan:
        known = self._alike[_alike(node, stretch)]
        if len(known) < _FEWEST:
            return stretch
        return TimeSpan(stretch.kind, stretch.name, self._random.choice(known))


def _alike(node: NodeId, stretch: TimeSpan) -> _Alike:
    return stretch.kind, stretch.name, family(node) if stretch.kind == "own" else ""
