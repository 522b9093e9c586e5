"""Which changes would shorten a run most: each is tried, none is guessed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.engine.critical import critical_path, shares
from weft.engine.simulate.change import Change, Scale
from weft.engine.simulate.prediction import simulate
from weft.engine.simulate.script import Recording, Work
from weft.engine.trace import Trace

_FAMILIES = 12
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class Advice:
    """A change in words, the wall time it would lead to, and what part of today's that saves."""

    change: Change
    words: str
    wall_s: float
    saves: float


def advise(recording: Recording, change: Change, count: int = 3) -> tuple[Advice, ...]:
    """The `count` changes on top of `change` that shorten the run most, the best first.

    Tried are: twice and all the slots, of each kind; each tool and model twice as fast; and each
    family of nodes on the critical path twice as fast. What saves less than 0.5 % is left out.
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
    """Without what is no better than something said before about the same slots."""
    kept: dict[str, Advice] = {}
    for advice in found:
        about = advice.words.rpartition(":")[0] or advice.words
        kept.setdefault(about, advice)
    return tuple(kept.values())


def _candidates(recording: Recording, change: Change, trace: Trace) -> Iterator[tuple[str, Change]]:
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


def _called(recording: Recording) -> list[str]:
    found = {
        f"{stretch.kind}.{stretch.name}"
        for script in recording.every.values()
        for attempt in script.attempts
        for step in attempt.steps
        if isinstance(step, Work)
        for stretch in step.stretches
        if stretch.kind != "own"
    }
    return sorted(found)
