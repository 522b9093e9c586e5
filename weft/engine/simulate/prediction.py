"""What a changed run would come to: wall time, cost and failures, with their spread. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median, quantiles

from weft.core.events import Listener, RunStatus
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine.result import verdict
from weft.engine.simulate.change import Change
from weft.engine.simulate.machine import Machine
from weft.engine.simulate.play import Player
from weft.engine.simulate.script import Recording
from weft.engine.simulate.times import Times


@dataclass(frozen=True, slots=True)
class Simulated:
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
    """Simulated runs of one change, and the run that was recorded: `ended` as in `Recording`.

    `notes`: where the model of the machine does not hold, in sentences.
    """

    recorded_s: float
    runs: tuple[Simulated, ...]
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
        """How many times as fast as the recorded run."""
        return self.recorded_s / self.wall_s if self.wall_s > 0 else 1.0

    @property
    def money(self) -> float:
        """The median of what the runs cost, in US dollars."""
        return median([run.usage.money for run in self.runs])

    @property
    def tokens(self) -> float:
        """The median of the tokens."""
        return median([run.usage.tokens for run in self.runs])

    @property
    def statuses(self) -> Counter[str]:
        """How many runs ended how."""
        return Counter(run.status for run in self.runs)


def simulate(
    recording: Recording,
    change: Change,
    *,
    seeds: int = 1,
    listeners: Iterable[Listener] = (),
) -> Prediction:
    """Play `recording` under `change`, with so many seeds from `change.seed` on.

    The first seed takes recorded times as they are, so one seed without faults has no chance in it;
    the others draw each time from those of the same code. `listeners` get the events of the first.
    """
    first = change.seed
    found = [_one(recording, change, listeners)]
    found += [
        _one(recording, replace(change, seed=seed, resample=True), ())
        for seed in range(first + 1, first + max(seeds, 1))
    ]
    notes = Machine(recording).notes()
    return Prediction(recording.wall_s, tuple(found), recording.ended, notes)


def _one(recording: Recording, change: Change, listeners: Iterable[Listener]) -> Simulated:
    times = Times(recording.every.values(), change)
    player = Player(recording, change, times, listeners)
    wall_s = player.play()
    scheduler = player.scheduler
    status, reasons, _ = verdict(scheduler.states, player.graph.keep, scheduler.ended_by)
    failed = _failed(player)
    nodes = len(scheduler.states)
    return Simulated(change.seed, status, wall_s, player.usage, nodes, failed, tuple(reasons))


def _failed(player: Player) -> tuple[NodeId, ...]:
    return tuple(
        node
        for node, state in player.scheduler.states.items()
        if state.outcome is not None and state.outcome.status == "failed"
    )
