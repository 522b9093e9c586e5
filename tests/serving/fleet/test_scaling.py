"""The scaling policy: its promises for any load, and simulated days of a fleet."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.serving.fleet import FleetLoad, ScalingOptions, ScalingState, decide


def load(calls: int, running: int = 0) -> FleetLoad:
    return FleetLoad(calls - running, running, 1, 0, 0)


def play(
    options: ScalingOptions, calls: Callable[[float], int], steps: int, every_s: float = 5.0
) -> list[int]:
    """The number of replicas after each step of a given load."""
    state, replicas, found = ScalingState(), options.least, []
    for step in range(steps):
        state, replicas = decide(
            options, state, load(calls(step * every_s)), replicas, step * every_s
        )
        found.append(replicas)
    return found


OPTIONS = st.builds(
    ScalingOptions,
    least=st.integers(0, 3),
    most=st.integers(3, 20),
    target_calls=st.floats(0.5, 50),
    tolerance=st.floats(0, 0.5),
    cooldown_s=st.floats(0, 100),
    window_s=st.floats(0, 300),
    growth=st.floats(1.01, 4),
)


@settings(max_examples=200, deadline=None)
@given(
    OPTIONS, st.lists(st.tuples(st.floats(0, 60), st.integers(0, 2_000)), max_size=40), st.data()
)
def test_promises_for_any_load(
    options: ScalingOptions, trace: list[tuple[float, int]], data: st.DataObject
) -> None:
    state, replicas, now_s, grown_s = ScalingState(), data.draw(st.integers(0, 40)), 0.0, -math.inf
    past: list[tuple[float, int]] = []
    for wait_s, calls in trace:
        now_s += wait_s
        before = replicas
        state, replicas = decide(options, state, load(calls), replicas, now_s)
        past.append((now_s, calls))
        assert options.least <= replicas <= options.most
        within = options.least <= before <= options.most
        if replicas > before and within:
            assert now_s - grown_s >= options.cooldown_s
            assert replicas <= max(before + 1, before * options.growth)
            grown_s = now_s
        if replicas < before and within:
            recent = [n for at_s, n in past if at_s > now_s - options.window_s]
            most = max([*recent, calls])
            needed = math.ceil(most / options.target_calls / (1 + options.tolerance) - 1e-6)
            assert replicas >= min(needed, before, options.most)
        assert [at_s for at_s, _ in state.needs] == sorted(at_s for at_s, _ in state.needs)
        counts = [count for _, count in state.needs]
        assert counts == sorted(counts, reverse=True)


@settings(max_examples=100, deadline=None)
@given(OPTIONS, st.integers(0, 500))
def test_a_constant_load_settles_and_stays(options: ScalingOptions, calls: int) -> None:
    found = play(options, lambda _: calls, 400)
    assert len(set(found[-50:])) == 1
    enough = found[-1] * options.target_calls * (1 + options.tolerance) >= calls - 1e-6
    assert enough or found[-1] == options.most
    spare = (found[-1] - 1) * options.target_calls * (1 - options.tolerance)
    assert spare <= calls or found[-1] == options.least


def test_noise_within_the_tolerance_changes_nothing() -> None:
    options = ScalingOptions(least=1, most=10, target_calls=10, tolerance=0.2, cooldown_s=0)
    found = play(options, lambda at_s: 50 + (-9, 8, -4, 10)[int(at_s / 5) % 4], 400)
    assert len(set(found[10:])) == 1
    assert found[-1] in (5, 6)


def test_valleys_shorter_than_the_window_take_no_replica() -> None:
    options = ScalingOptions(most=10, target_calls=10, cooldown_s=0, window_s=300)
    found = play(options, lambda at_s: 80 if at_s % 250 < 50 else 0, 400)
    assert set(found[20:]) == {8}
    found = play(options, lambda at_s: 80 if at_s % 400 < 50 else 0, 400)
    assert {1, 8} <= set(found[20:])


def test_a_burst_grows_step_by_step_with_time_for_each() -> None:
    options = ScalingOptions(most=16, target_calls=10, cooldown_s=60, growth=2)
    found = play(options, lambda _: 1_000, 60)
    changes = [n for n in range(1, 60) if found[n] != found[n - 1]]
    assert sorted(set(found)) == [2, 4, 8, 16]
    assert [b - a for a, b in pairwise(changes)] == [12, 12]


def test_an_idle_fleet_goes_to_zero_and_comes_back_at_once() -> None:
    options = ScalingOptions(least=0, most=4, target_calls=10, window_s=100)
    found = play(options, lambda at_s: 1 if at_s < 50 or at_s >= 500 else 0, 120)
    assert found[0] == 1
    assert found[28] == 1
    assert found[30] == 0
    assert found[99] == 0
    assert found[100] == 1


class Day:
    """A fleet in steps of a second: calls come, take time on replicas, which take time to start."""

    def __init__(self, options: ScalingOptions, start_s: int = 90, call_s: int = 20) -> None:
        self.options, self.start_s, self.call_s = options, start_s, call_s
        self.per_replica = int(options.target_calls)

    def run(self, rate: Callable[[int], float], seconds: int) -> dict[str, Any]:
        state, wanted, starts = ScalingState(), self.options.least, [0] * self.options.least
        ends: list[int] = []
        waiting, due, waits, sizes = 0, 0.0, 0, []
        for now in range(seconds):
            due += rate(now)
            waiting, due = waiting + int(due), due - int(due)
            ends = [end for end in ends if end > now]
            ready = sum(start <= now for start in starts)
            for _ in range(min(waiting, ready * self.per_replica - len(ends))):
                waiting -= 1
                ends.append(now + self.call_s)
            waits += waiting
            if now % 5 == 0:
                state, wanted = decide(self.options, state, load(waiting + len(ends)), wanted, now)
                starts += [now + self.start_s] * (wanted - len(starts))
                del starts[wanted:]
            sizes.append(wanted)
        changes = sum(a != b for a, b in pairwise(sizes))
        return {"sizes": sizes, "changes": changes, "wait_s": waits, "left": waiting}


def test_a_day_of_a_fleet() -> None:
    def rate(now: int) -> float:  # calls a second: quiet, a wave of an hour, quiet
        return 0.2 + 3.8 * max(0.0, math.sin((now - 3_600) / 3_600 * math.pi)) * (
            3_600 <= now < 7_200
        )

    options = ScalingOptions(least=1, most=12, target_calls=10)
    day = Day(options).run(rate, 4 * 3_600)
    fixed = Day(ScalingOptions(least=12, most=12, target_calls=10)).run(rate, 4 * 3_600)
    assert max(day["sizes"]) in (8, 9, 10)
    assert day["sizes"][-1] == 1
    assert day["left"] == 0
    assert day["changes"] <= 20  # up in steps and down in steps, no flapping
    assert sum(day["sizes"]) < 0.35 * sum(fixed["sizes"])
    calls = sum(rate(now) for now in range(4 * 3_600))
    assert day["wait_s"] / calls < 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": -1},
        {"least": 5, "most": 4},
        {"least": 0, "most": 0},
        {"target_calls": 0},
        {"target_calls": math.nan},
        {"growth": 1},
        {"tolerance": -0.1},
        {"window_s": math.inf},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"replicas: 0|it has to be a number"):
        ScalingOptions(**wrong)
