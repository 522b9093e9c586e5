"""How many replicas a model should have, by the calls that run and wait: a pure policy.

It follows the horizontal pod autoscaler of Kubernetes: a target per replica, a tolerance around it,
and a stabilization window before replicas are taken away. No clock, no I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from weft.serving.fleet.stats import FleetLoad

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """When a fleet grows and shrinks.

    least, most         bounds of the number of replicas; `least` may be 0
    target_calls        calls that one replica should have, running and waiting together
    tolerance           no change while calls are within this fraction of the target of all replicas
    cooldown_s          least time between two growths: a replica takes a while to start
    window_s            a fleet shrinks to what it needed most during this time, not below
    growth              a fleet grows at most by this factor at once, and always by one

    Raises: `ValueError` for a value out of range.
    """

    least: int = 1
    most: int = 8
    target_calls: float = 32.0
    tolerance: float = 0.1
    cooldown_s: float = 60.0
    window_s: float = 300.0
    growth: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or not self.most:
            raise ValueError(f"{self.least} to {self.most} replicas: 0 <= least <= most, most > 0")
        for name, low in (("target_calls", 0), ("growth", 1)):
            value = getattr(self, name)
            if not low < value < math.inf:
                raise ValueError(f"{name} is {value}: it has to be a number above {low}")
        for name in ("tolerance", "cooldown_s", "window_s"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}: it has to be a number from 0")


@dataclass(frozen=True, slots=True)
class ScalingState:
    """What earlier decisions leave: the needs within the window, and when the fleet grew last.

    `needs` are pairs of a time and a number of replicas; times rise and numbers fall, since an
    earlier, smaller need cannot matter any more.
    """

    needs: tuple[tuple[float, int], ...] = field(default=())
    grown_s: float = -math.inf


def decide(
    options: ScalingOptions, state: ScalingState, load: FleetLoad, replicas: int, now_s: float
) -> tuple[ScalingState, int]:
    """The next state, and how many replicas there should be.

    `replicas`: how many were asked for last, of which some may still start. `now_s` never falls.
    The number is within the options' bounds, whatever `replicas` is.
    """
    need = _need(options, load.waiting + load.running, replicas)
    oldest_s = now_s - options.window_s
    kept = [(at_s, count) for at_s, count in state.needs if at_s > oldest_s and count > need]
    needs = (*kept, (now_s, need))
    wanted = min(needs[0][1], replicas) if need < replicas else need
    grown_s = state.grown_s
    if wanted > replicas:
        if now_s - grown_s < options.cooldown_s:
            wanted = replicas
        else:
            wanted = min(wanted, max(replicas + 1, math.floor(replicas * options.growth)))
            grown_s = now_s
    return ScalingState(needs, grown_s), min(max(wanted, options.least), options.most)


def _need(options: ScalingOptions, calls: int, replicas: int) -> int:
    """Replicas for so many calls, without regard to the past."""
    capacity = replicas * options.target_calls
    if calls and abs(calls - capacity) <= options.tolerance * capacity:
        return min(max(replicas, options.least), options.most)
    exact = math.ceil(calls / options.target_calls - _EPSILON)
    return min(max(exact, options.least), options.most)
