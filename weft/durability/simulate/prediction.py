"""Predictions for a changed run, and the changes that shorten it most: each is tried. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median, quantiles

from weft.core.events import Listener, RunStatus
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.durability.simulate.change import Change, Scale, SimulatedTimes
from weft.durability.simulate.machine import MachineModel
from weft.durability.simulate.script import RecordedRun, WorkStep
from weft.durability.simulate.simulator import RunSimulator
from weft.engine.analysis.critical_path import critical_path, shares
from weft.engine.analysis.trace import Trace
from weft.engine.runner.result import verdict


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One simulated run. `usage` counts what succeeded; `failed` are nodes, `reasons` sentences."""

    seed: int
    status: RunStatus
    wall_s: float
    usage: Usage
    nodes: int
    failed: tuple[NodeId, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The simulated runs of one change, and the recorded run: `ended` as in `RecordedRun`.

    `notes`: where the model of the machine does not hold, in sentences.
    """

    recorded_s: float
    runs: tuple[SimulatedRun, ...]
    ended: bool = True
    notes: tuple[str, ...] = ()

    @property
    def wall_s(self) -> float:
        """The median of the wall times."""
        return median([run.wall_s for run in self.runs])

    @property
    def spread_s(self) -> tuple[float, float]:
        """The tenth and the ninetieth percentile of the wall times."""
        walls = [run.wall_s for run in self.runs]
        if len(walls) == 1:
            return walls[0], walls[0]
        tenths = quantiles(walls, n=10, method="inclusive")
        return tenths[0], tenths[-1]

    @property
    def speedup(self) -> float:
        """The speed relative to the recorded run."""
        return self.recorded_s / self.wall_s if self.wall_s > 0 else 1.0

    @property
    def money(self) -> float:
        """The median of the costs, in US dollars."""
        return median([run.usage.money for run in self.runs])

    @property
    def tokens(self) -> float:
        """The median of the tokens."""
        return median([run.usage.tokens for run in self.runs])

    @property
    def statuses(self) -> Counter[str]:
        """The number of runs by status."""
        return Counter(run.status for run in self.runs)


def simulate(
    recording: RecordedRun,
    change: Change,
    *,
    seeds: int = 1,
    listeners: Iterable[Listener] = (),
) -> Prediction:
    """Play `recording` under `change`, with `seeds` seeds from `change.seed` on.

    The first seed takes recorded times as they are, so one seed without faults is deterministic;
    the others draw each time from those of the same code. `listeners` get the events of the first.
    """
    first = change.seed
    found = [_one(recording, change, listeners)]
    found += [
        _one(recording, replace(change, seed=seed, resample=True), ())
        for seed in range(first + 1, first + max(seeds, 1))
    ]
    notes = MachineModel(recording).notes()
    return Prediction(recording.wall_s, tuple(found), recording.ended, notes)


def _one(recording: RecordedRun, change: Change, listeners: Iterable[Listener]) -> SimulatedRun:
    times = SimulatedTimes(recording.every.values(), change)
    player = RunSimulator(recording, change, times, listeners)
    wall_s = player.play()
    scheduler = player.scheduler
    status, reasons, _ = verdict(scheduler.states, player.graph.keep, scheduler.ended_by)
    failed = _failed(player)
    nodes = len(scheduler.states)
    return SimulatedRun(change.seed, status, wall_s, player.usage, nodes, failed, tuple(reasons))


def _failed(player: RunSimulator) -> tuple[NodeId, ...]:
    return tuple(
        node
        for node, state in player.scheduler.states.items()
        if state.outcome is not None and state.outcome.status == "failed"
    )


_FAMILIES = 12
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class Advice:
    """A change in words, its wall time, and the share of the current wall time that it saves."""

    change: Change
    words: str
    wall_s: float
    saves: float


def advise(recording: RecordedRun, change: Change, count: int = 3) -> tuple[Advice, ...]:
    """The `count` changes on top of `change` that shorten the run most, the best first.

    It tries twice the slots and no limit, for each kind; each tool and model twice as fast; and
    each family of nodes on the critical path twice as fast. Savings below 0.5 % are left out.
    """
    trace = Trace()
    now_s = simulate(recording, change, listeners=[trace]).wall_s
    found = []
    for words, other in _candidates(recording, change, trace):
        wall_s = simulate(recording, other).wall_s
        saves = 1 - wall_s / now_s if now_s > 0 else 0.0
        if saves >= _LEAST:
            found.append(Advice(other, words, wall_s, saves))
    found.sort(key=lambda advice: -advice.saves)
    return _different(found)[:count]


def _different(found: list[Advice]) -> tuple[Advice, ...]:
    """Without advice that is no better than earlier advice on the same slots."""
    best: dict[str, Advice] = {}
    for advice in found:
        topic = advice.words.rpartition(":")[0] or advice.words
        best.setdefault(topic, advice)
    return tuple(best.values())


def _candidates(
    recording: RecordedRun, change: Change, trace: Trace
) -> Iterator[tuple[str, Change]]:
    general, classes = change.slots(recording.limits)
    if general is not None:
        yield f"slots: {2 * general} instead of {general}", replace(change, workers=2 * general)
        yield f"slots: no limit instead of {general}", replace(change, workers=0)
    for name, limit in classes.items():
        more = {**change.limits, name: 2 * limit}
        yield f"slots of {name}: {2 * limit} instead of {limit}", replace(change, limits=more)
        more = {**change.limits, name: 0}
        yield f"slots of {name}: no limit instead of {limit}", replace(change, limits=more)
    for pattern in _called(recording):
        scales = (*change.scales, Scale(pattern, 0.5))
        yield f"{pattern.replace('.', ' ', 1)} twice as fast", replace(change, scales=scales)
    path = critical_path(trace)
    families = [share.target for share in shares(trace, path) if share.doing == "work"]
    for name in families[:_FAMILIES]:
        scales = (*change.scales, Scale(f"own.{name}", 0.5))
        yield f"the code of {name} twice as fast", replace(change, scales=scales)


def _called(recording: RecordedRun) -> list[str]:
    found = {
        f"{stretch.kind}.{stretch.name}"
        for script in recording.every.values()
        for attempt in script.attempts
        for step in attempt.steps
        if isinstance(step, WorkStep)
        for stretch in step.stretches
        if stretch.kind != "own"
    }
    return sorted(found)
