"""One timer of the clock behind all timers of a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.virtual_run import WatchedClock
from weft.core.ids import NodeId
from weft.engine import Node
from weft.engine.runner.tasks import Timers
from weft.engine.scheduler.commands import SetTimer, TimerFired
from weft.engine.scheduler.state import NodeState


async def nothing(*_: object) -> None: ...


def state(number: int) -> NodeState:
    return NodeState(Node(NodeId(f"n{number}"), nothing), number, 0.0, None)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 50)), max_size=30),
    st.sets(st.integers(0, 4)),
)
def test_timers_fire_once_at_their_time_unless_they_are_forgotten(
    timers: list[tuple[int, int]], forgotten: set[int]
) -> None:
    clock = WatchedClock()
    states = [state(number) for number in range(5)]
    fired: list[tuple[int, int, float]] = []

    async def main() -> None:
        alarm = Timers(clock, lambda f: fired.append((f.state.order, f.epoch, clock.now())))
        for number, (owner, delay) in enumerate(timers):
            alarm.set(SetTimer(states[owner], number, "retry", delay))
        assert len(clock.alive) <= 1
        for owner in forgotten:
            alarm.clear(states[owner])
        await clock.sleep(60)
        alarm.close()
        assert not clock.alive

    clock.run(main())
    expected = [
        (owner, number, float(delay))
        for number, (owner, delay) in enumerate(timers)
        if owner not in forgotten
    ]
    assert sorted(fired) == sorted(expected)
    assert [at for *_, at in fired] == sorted(at for *_, at in fired)


def test_what_is_closed_fires_no_more() -> None:
    clock = WatchedClock()
    fired: list[TimerFired] = []

    async def main() -> None:
        alarm = Timers(clock, fired.append)
        alarm.set(SetTimer(state(0), 1, "timeout", 5))
        alarm.close()
        await clock.sleep(10)

    clock.run(main())
    assert fired == []
