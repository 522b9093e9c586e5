"""The nine planted cases. Which settings help, and how much, is drawn from the seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from evals.optimise.planted import KNOBS, Array, Planted
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import LATENCY, QUALITY

Random = np.random.Generator
_ALTERNATIVES: Final = [(knob, option) for knob, all_ in KNOBS.items() for option in all_[1:]]


def _nulls(random: Random) -> dict[tuple[str, str], float]:
    """Settings that do nothing or harm."""
    return {setting: -float(random.uniform(0, 0.6)) for setting in _ALTERNATIVES}


def _helpful(random: Random, count: int, *without: str) -> list[tuple[str, str]]:
    """A random setting of each of `count` random knobs."""
    knobs = [knob for knob in KNOBS if knob not in without]
    chosen = random.choice(len(knobs), size=count, replace=False)
    return [(knobs[at], str(random.choice(KNOBS[knobs[at]][1:]))) for at in chosen]


def additive(random: Random) -> Planted:
    """Three of six knobs help, whatever the others are."""
    effects = _nulls(random)
    effects |= {each: float(random.uniform(0.5, 0.8)) for each in _helpful(random, 3)}
    return Planted("additive", 0.0, effects)


def interacting_pair(random: Random) -> Planted:
    """Two settings harm alone and help together."""
    one, other = _helpful(random, 2)
    effects = _nulls(random) | {one: -0.4, other: -0.4}
    return Planted(
        "interacting_pair", 0.0, effects, {(one, other): float(random.uniform(1.8, 2.2))}
    )


def seed_trap(random: Random) -> Planted:
    """The order of the answer's fields hides what everything else does."""
    trap = ("answer.order", "reason_first")
    effects = _nulls(random) | {trap: 0.9}
    effects |= {
        each: float(random.uniform(0.5, 0.8)) for each in _helpful(random, 2, "answer.order")
    }
    return Planted("seed_trap", -1.2, effects, muffled_without=trap)


def no_headroom(random: Random) -> Planted:
    """Nothing helps."""
    return Planted("no_headroom", float(random.uniform(-0.5, 1.0)), _nulls(random))


def overfit_bait(random: Random) -> Planted:
    """Demonstrations that were taken from the development cases, beside others that help."""
    bait, real = ("plan.demos", "near"), ("plan.demos", "mixed")
    effects = _nulls(random) | {bait: -0.3, real: float(random.uniform(0.5, 0.7))}
    effects |= {each: float(random.uniform(0.5, 0.7)) for each in _helpful(random, 1, "plan.demos")}
    return Planted("overfit_bait", 0.0, effects, bait={bait: 2.0})


def judge_hack(random: Random) -> Planted:
    """The judge likes long answers, which are worse."""
    hack = ("answer.style", "long")
    effects = _nulls(random) | {hack: -0.5}
    effects |= {
        each: float(random.uniform(0.5, 0.8)) for each in _helpful(random, 2, "answer.style")
    }
    return Planted("judge_hack", 0.0, effects, hack={hack: 2.5})


def structure(random: Random) -> Planted:
    """A verifier helps in both branches, and only one of them has slack."""
    effects = _nulls(random) | {("facts.verify", "yes"): 1.0, ("plan.verify", "yes"): 1.0}
    return Planted("structure", 0.0, effects, goal=StudyGoal(QUALITY, (LATENCY,)))


def drift(random: Random) -> Planted:
    """The served model gets better during the study, whatever the settings are."""
    effects = _nulls(random)
    effects |= {each: float(random.uniform(0.5, 0.8)) for each in _helpful(random, 2)}
    at = int(random.integers(500, 3000))
    return Planted("drift", 0.0, effects, drift=(at, float(random.choice([-0.6, 0.6]))))


def heavy_tail(random: Random) -> Planted:
    """One setting lowers the mean and lengthens the tail, another one cuts the tail. Neither
    changes an answer; a third saves time and costs quality.
    """

    def usual(time: Array, tail: Array) -> Array:
        return np.where(tail < 0.08, 3 * time, time)

    def gambles(time: Array, tail: Array) -> Array:
        return np.where(tail < 0.08, 4 * time, 0.6 * time)

    def capped(time: Array, tail: Array) -> Array:
        return np.where(tail < 0.08, 1.2 * time, 0.95 * time)

    effects = _nulls(random) | {
        ("plan.demos", "mixed"): 0.0,
        ("plan.demos", "near"): 0.0,
        ("answer.order", "reason_first"): -0.8,
    }
    seconds = {
        ("plan.demos", "none"): usual,
        ("plan.demos", "mixed"): gambles,
        ("plan.demos", "near"): capped,
        ("answer.order", "reason_first"): lambda time, _: 0.5 * time,
    }
    return Planted("heavy_tail", 0.0, effects, goal=StudyGoal(LATENCY, (QUALITY,)), seconds=seconds)


PLANTED: Final[dict[str, Callable[[Random], Planted]]] = {
    each.__name__: each
    for each in (
        additive,
        interacting_pair,
        seed_trap,
        no_headroom,
        overfit_bait,
        judge_hack,
        structure,
        drift,
        heavy_tail,
    )
}
