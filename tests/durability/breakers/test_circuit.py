"""The states of a circuit breaker, against a bookkeeping that forgets nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.breaker import Breaker
from weft.durability.breakers.circuit import BreakerChange, BreakerRefusal, CircuitBreaker, Permit


@dataclass
class Phase:
    """A stretch of time in one state: the calls that began in it, and how they ended."""

    state: str
    since_s: float
    under_way: set[int] = field(default_factory=set)
    failed: list[float] = field(default_factory=list)
    succeeded: int = 0


class Oracle:
    """What a breaker should do, from all that has happened. Looks everything up each time."""

    def __init__(self, settings: Breaker) -> None:
        self.settings = settings
        self.phases = [Phase("closed", 0.0)]

    @property
    def now(self) -> Phase:
        return self.phases[-1]

    def begins(self, call: int, at_s: float) -> bool:
        if self.now.state == "open" and at_s >= self.now.since_s + self.settings.after_s:
            self.phases.append(Phase("half-open", at_s))
        allowed = {"closed": True, "open": False, "half-open": not self.now.under_way}
        if allowed[self.now.state]:
            self.now.under_way.add(call)
            return True
        return False

    def ends(self, call: int, how: str, at_s: float) -> None:
        phase = self.now
        for each in self.phases[:-1]:
            each.under_way.discard(call)
        if call not in phase.under_way:
            return
        phase.under_way.remove(call)
        if how == "failed":
            phase.failed.append(at_s)
        phase.succeeded += how == "succeeded"
        recent = [one for one in phase.failed if at_s - self.settings.within_s < one]
        enough = {"closed": self.settings.failures, "half-open": 1}[phase.state]
        if len(recent if phase.state == "closed" else phase.failed) >= enough:
            self.phases.append(Phase("open", at_s))
        elif phase.state == "half-open" and phase.succeeded >= self.settings.successes:
            self.phases.append(Phase("closed", at_s))


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 12)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.sampled_from(["succeeded", "failed", "failed", "nothing"]), st.integers(0, 9)),
    ),
    max_size=80,
)


@settings(max_examples=400, deadline=None)
@given(
    ACTIONS,
    st.builds(
        Breaker, st.integers(1, 4), st.integers(1, 20), st.integers(1, 15), st.integers(1, 3)
    ),
)
def test_a_breaker_does_as_the_oracle(actions: list[tuple[str, int]], settings: Breaker) -> None:
    breaker, oracle = CircuitBreaker(settings), Oracle(settings)
    now_s, begun = 0.0, 0
    running: dict[int, Permit] = {}
    for action, number in actions:
        if action == "wait":
            now_s += number
            continue
        if action == "begin":
            permit, _ = breaker.admit(now_s)
            assert oracle.begins(begun, now_s) == isinstance(permit, Permit)
            if isinstance(permit, Permit):
                running[begun] = permit
            begun += 1
        elif running:
            call = list(running)[number % len(running)]
            end(breaker, running.pop(call), action, now_s)
            oracle.ends(call, action, now_s)
        assert breaker.state == oracle.now.state
        if breaker.state == "half-open":
            assert len(oracle.now.under_way) <= 1


def end(breaker: CircuitBreaker, permit: Permit, how: str, now_s: float) -> BreakerChange | None:
    if how == "failed":
        return breaker.failed(permit, now_s)
    if how == "succeeded":
        return breaker.succeeded(permit, now_s)
    breaker.release(permit)
    return None


def begin(breaker: CircuitBreaker, now_s: float) -> Any:
    return breaker.admit(now_s)[0]


def opened(settings: Breaker, now_s: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker(settings)
    for _ in range(settings.failures):
        breaker.failed(begin(breaker, now_s), now_s)
    assert breaker.state == "open"
    return breaker


def test_a_success_does_not_reset_the_window_and_time_does() -> None:
    breaker = CircuitBreaker(Breaker(failures=3, within_s=10))
    for second in (0, 4, 8):
        breaker.succeeded(begin(breaker, second), second)
        change = breaker.failed(begin(breaker, second), second)
    assert change == BreakerChange("open", 3, 60.0)
    slow = CircuitBreaker(Breaker(failures=3, within_s=10))
    for second in (0, 5, 10, 16, 22):  # never three within ten seconds
        assert slow.failed(begin(slow, second), second) is None
    assert slow.state == "closed"


def test_a_refusal_says_since_when_and_until_when() -> None:
    breaker = opened(Breaker(failures=1, after_s=30), 5.0)
    assert begin(breaker, 10.0) == BreakerRefusal("open", 5.0, 25.0)
    trial, change = breaker.admit(35.0)
    assert isinstance(trial, Permit)
    assert change == BreakerChange("half-open")
    assert begin(breaker, 36.0) == BreakerRefusal("half-open", 5.0, None)
    assert breaker.failed(trial, 40.0) == BreakerChange("open", 1, 30.0)
    assert begin(breaker, 41.0) == BreakerRefusal("open", 5.0, 29.0)


def test_a_timer_that_rings_a_hair_early_is_on_time() -> None:
    breaker = opened(Breaker(failures=1, after_s=0.1), 0.1)
    assert isinstance(begin(breaker, 0.1 + 0.1 - 1e-9), Permit)


def test_a_call_from_before_says_nothing_of_a_trial() -> None:
    breaker = CircuitBreaker(Breaker(failures=1, after_s=10, successes=1))
    slow, late = begin(breaker, 0), begin(breaker, 0)
    breaker.failed(begin(breaker, 0), 0)
    trial = begin(breaker, 10)
    assert breaker.failed(late, 11) is None
    assert begin(breaker, 11) == BreakerRefusal("half-open", 0, None)
    assert breaker.succeeded(slow, 11) is None
    assert breaker.succeeded(trial, 12) == BreakerChange("closed", 1)


def test_a_trial_that_says_nothing_makes_room_for_the_next() -> None:
    breaker = opened(Breaker(failures=1, after_s=10))
    breaker.release(begin(breaker, 10))
    assert isinstance(begin(breaker, 10), Permit)


def test_those_that_wait_for_a_trial_come_back_in_turn() -> None:
    settings = Breaker(failures=1, after_s=10, successes=3)
    breaker = CircuitBreaker(settings)
    breaker.succeeded(begin(breaker, 0.0), 2.0)  # calls take two seconds
    breaker.failed(begin(breaker, 2.0), 2.0)
    trial = begin(breaker, 12.0)
    assert [begin(breaker, 12.0).retry_s for _ in range(5)] == [3.0, 6.0, 9.0, 9.0, 9.0]
    for second in (14.0, 17.0, 20.0):  # each of the first makes the next trial call
        breaker.succeeded(trial, second)
        trial = begin(breaker, second + 1)
    assert breaker.state == "closed", "before the others come"


def test_an_open_breaker_of_an_earlier_process_is_open_here() -> None:
    breaker = CircuitBreaker(Breaker(after_s=60))
    breaker.restore(100.0, 20.0)
    assert begin(breaker, 101.0) == BreakerRefusal("open", 100.0, 19.0)
    breaker.restore(101.0, 60.0)  # it is not fresh any more
    assert begin(breaker, 101.0) == BreakerRefusal("open", 100.0, 19.0)
    other = CircuitBreaker(Breaker(after_s=60))
    other.restore(0.0, 10_000.0)  # a clock that was set
    assert begin(other, 0.0) == BreakerRefusal("open", 0.0, 60.0)
    told = CircuitBreaker(Breaker(failures=2))
    told.failed(begin(told, 0), 0)
    told.restore(1.0, 20.0)
    assert told.state == "closed", "this process knows better"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("failures", 0), ("successes", 0), ("failures", True), ("failures", 2.5)),
        *(("within_s", 0), ("after_s", -1), ("after_s", float("inf")), ("within_s", "5m")),
    ],
)
def test_wrong_settings_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field} of a breaker"):
        Breaker(**{field: value})
