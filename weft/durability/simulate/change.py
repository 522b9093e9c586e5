"""Changes of a simulated run: slots, speeds, failures, random times."""

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
    """Multiplies the times that match `pattern` by `factor`, or sets them to `seconds`.

    A pattern is `tool.NAME`, `model.NAME`, `node.FAMILY` or `own.FAMILY` (a node's own code), with
    `*` and `?`; `notes[*]` is the family of `notes[3]`.
    """

    pattern: str
    factor: float = 1.0
    seconds: float | None = None

    @property
    def is_of_nodes(self) -> bool:
        """Whether it matches nodes, and not their calls."""
        return self.pattern.startswith(("node.", "own."))

    def of(self, seconds: float) -> float:
        """The changed time for `seconds`."""
        return self.seconds if self.seconds is not None else seconds * self.factor


@dataclass(frozen=True, slots=True)
class Fault:
    """Fails each attempt of a node, tool or model that `name` fits with `probability`."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Change:
    """A what-if. Without arguments: the run as recorded.

    workers    the most nodes at once; None: as recorded, 0: no limit
    limits     changed slots of resource classes; 0: no limit
    scales     changed times; the last match counts
    faults     attempts that fail
    resample   draw each time from those of the same code, instead of taking its own
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
        """The duration of `stretches` of `node`, one after another."""
        if not self.scales:
            return sum([stretch.seconds for stretch in stretches])
        constant_s: dict[Scale, float] = {}
        total_s = 0.0
        for stretch in stretches:
            scale = self._scale(family(node), stretch)
            if scale is None:
                total_s += stretch.seconds
            elif scale.seconds is None or not scale.is_of_nodes:
                total_s += scale.of(stretch.seconds)
            else:
                constant_s[scale] = scale.seconds  # once per node
        return total_s + sum(constant_s.values())

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
    """`fnmatch` with literal brackets: they are part of the names of families."""
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


_MIN_SAMPLES = 3
_TimeKey = tuple[CallKind, str, str]


class SimulatedTimes:
    """The times of one simulated run. Resampling draws within a tool, model or node family."""

    def __init__(self, scripts: Iterable[NodeScript], change: Change) -> None:
        self._change = change
        self._random = Random(change.seed)  # noqa: S311 - a simulation
        self._samples: defaultdict[_TimeKey, list[float]] = defaultdict(list)
        if change.resample:
            for script in scripts:
                for attempt in script.attempts:
                    for step in attempt.steps:
                        if isinstance(step, WorkStep):
                            self._add(script.info.id, step)

    def of(self, node: NodeId, work: WorkStep) -> float:
        """The duration of `work` of `node`."""
        stretches = work.stretches
        if self._change.resample:
            stretches = tuple(self._resampled(node, stretch) for stretch in stretches)
        return self._change.seconds(node, stretches)

    def _add(self, node: NodeId, work: WorkStep) -> None:
        for stretch in work.stretches:
            self._samples[_time_key(node, stretch)].append(stretch.seconds)

    def _resampled(self, node: NodeId, stretch: TimeSpan) -> TimeSpan:
        samples = self._samples[_time_key(node, stretch)]
        if len(samples) < _MIN_SAMPLES:
            return stretch
        return TimeSpan(stretch.kind, stretch.name, self._random.choice(samples))


def _time_key(node: NodeId, stretch: TimeSpan) -> _TimeKey:
    return stretch.kind, stretch.name, family(node) if stretch.kind == "own" else ""
