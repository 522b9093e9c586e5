"""Times that hold queueing: told apart from waiting by what the machine was measured to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.events import (
    Event,
    NodeFinished,
    NodeInfo,
    NodeStarted,
    Outcome,
    RunFinished,
    RunMeasured,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.durability.simulate import Change, recording, simulate
from weft.durability.simulate.machine import Processor

DONE = Outcome("succeeded", 1)


def told(
    times: list[tuple[float, float]], measured: RunMeasured | None, slots: int | None = None
) -> list[Event]:
    """A run of nodes side by side, which began and ended when `times` say."""
    ids = [NodeId(f"n{n}") for n in range(len(times))]
    limits = {} if slots is None else {"": slots}
    infos = tuple(NodeInfo(node, "tool") for node in ids)
    moments: list[tuple[float, int, Event]] = []
    for node, (begin, end) in zip(ids, times, strict=True):
        moments.append((begin, 1, NodeStarted(node, 1, begin)))
        moments.append((end, 0, NodeFinished(node, DONE, end)))
    moments.sort(key=lambda moment: moment[:2])
    wall = max(end for _, end in times)
    last: list[Event] = [] if measured is None else [measured]
    return [
        RunStarted(RunId("r"), "f", "2026-11-22T10:00:00+00:00", infos, limits),
        *(event for _, _, event in moments),
        *last,
        RunFinished("succeeded", Usage(), (), wall),
    ]


def loaded(cpu_s: dict[str, float], loop_s: float = 0.0, idle: float | None = 0.0) -> RunMeasured:
    return RunMeasured(loop_s, 0.0, 2, idle, {}, cpu_s, 0.0)


def predicted(events: list[Event], slots: int) -> float:
    return simulate(recording(events), Change(workers=slots)).wall_s


def test_threads_that_shared_two_processors_take_no_longer_one_after_the_other() -> None:
    """Eight computed for a second each: four seconds on two processors, eight on one."""
    events = told([(0.0, 4.0)] * 8, loaded({f"n{n}": 1.0 for n in range(8)}))
    assert predicted(events, 8) == pytest.approx(4.0)
    assert predicted(events, 2) == pytest.approx(4.0)
    assert predicted(events, 1) == pytest.approx(8.0)


def test_threads_that_held_the_interpreter_take_as_long_with_any_slots() -> None:
    events = told([(0.0, 8.0)] * 8, loaded({f"n{n}": 1.0 for n in range(8)}, idle=0.5))
    for slots in (1, 2, 8):
        assert predicted(events, slots) == pytest.approx(8.0)


def test_threads_that_waited_for_the_outside_did_not_queue() -> None:
    """A twentieth of their time is computing, and half of the machine had nothing to do."""
    events = told([(0.0, 2.0)] * 8, loaded({f"n{n}": 0.1 for n in range(8)}, idle=0.6))
    assert predicted(events, 8) == pytest.approx(2.0, rel=0.5)
    assert predicted(events, 1) == pytest.approx(16.0, rel=0.05)


def test_nodes_that_are_shorter_than_the_loops_own_time_wait_for_it_only() -> None:
    """A thousand began together, and ended eight at a time, as the loop came to them: fewer at a
    time are more steps of the scheduler, each of which costs something whatever it takes in.
    """
    times = [(0.0, 0.008 * (n // 8 + 1)) for n in range(1000)]
    measured = RunMeasured(1.0, 0.0, 2, 0.5, {f"n{n}": (1, 0.0) for n in range(1000)}, {}, 1.0)
    events = told(times, measured)
    nodes, step = 1000, 1.2
    recorded = nodes + step * 125
    for slots in (1, 8, 1000):
        steps = -(-nodes // slots)
        assert predicted(events, slots) == pytest.approx((nodes + step * steps) / recorded)
    assert predicted(told(times, None), 1) > 400  # what recorded times alone foretell


def test_where_the_model_does_not_hold_it_is_said() -> None:
    computed = {f"n{n}": 1.0 for n in range(2)}
    one_by_one = told([(0.0, 1.0), (1.0, 2.0)], loaded(computed, idle=0.5), slots=1)
    (note,) = simulate(recording(one_by_one), Change()).notes
    assert "never several at once" in note
    busy = told([(0.0, 1.0)], loaded({}, loop_s=0.5, idle=0.5))
    (note,) = simulate(recording(busy), Change()).notes
    assert "busy 50% of the time" in note
    (note,) = simulate(recording(told([(0.0, 1.0)], None)), Change()).notes
    assert "was not recorded" in note
    assert not simulate(recording(told([(0.0, 1.0)], loaded({}))), Change()).notes


@examples(200)
@given(
    st.lists(st.floats(0.01, 10), min_size=1, max_size=12),
    st.sampled_from([1.0, 1.5, 2.0, 4.0]),
)
def test_a_processor_is_shared_equally_and_never_idle_while_there_is_work(
    jobs: list[float], capacity: float
) -> None:
    processor = Processor(capacity)
    for number, cpu_s in enumerate(jobs):
        processor.add(0.0, cpu_s, number)
    ends: dict[object, float] = {}
    while (now_s := processor.next_s) is not None:
        ends.update(dict.fromkeys(processor.ended(now_s), now_s))
    # the slow way: small steps in which each job gets its share
    left = sorted(enumerate(jobs), key=lambda job: job[1])
    now_s = served_s = 0.0
    for place, (number, cpu_s) in enumerate(left):
        rate = min(1.0, capacity / (len(left) - place))
        now_s += (cpu_s - served_s) / rate
        served_s = cpu_s
        assert ends[number] == pytest.approx(now_s, rel=1e-6)
