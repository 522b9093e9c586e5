"""Intervals: who worked at the same time, what came to nothing, and how it is drawn."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from evals.speculative.pipeinfer.simulated import VirtualClock
from evals.speculative.pipeinfer.timeline import (
    Interval,
    Timeline,
    busy_s,
    cancelled_tokens,
    drawn,
    overlap_s,
)

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12)


def intervals(pairs: list[tuple[int, int]], who: str = "draft") -> list[Interval]:
    return [Interval(who, start, start + length, 1) for start, length in pairs]


@given(spans, spans)
def test_overlap_counts_seconds(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def seconds(pairs: list[tuple[int, int]]) -> set[int]:
        return {second for start, length in pairs for second in range(start, start + length)}

    assert busy_s(intervals(some)) == len(seconds(some))
    both = seconds(some) & seconds(others)
    assert overlap_s(intervals(some), intervals(others)) == len(both)


def test_work_is_put_down_as_it_happens() -> None:
    clock = VirtualClock()
    timeline = Timeline(clock.now)
    with timeline.working("target", 3) as first:
        clock.pass_by(1.0)
    with timeline.working("draft", 1) as second:
        clock.pass_by(0.5)
    timeline.discard(second)
    timeline.discard(first, 2)
    timeline.discard(-1)
    assert timeline.intervals == (
        Interval("target", 0.0, 1.0, 3, 2),
        Interval("draft", 1.0, 1.5, 1, 1),
    )
    assert [row["what"] for row in timeline.rows] == ["useful", "cancelled"]
    assert cancelled_tokens(timeline.intervals) == 3


def test_several_threads_write_on_one_timeline() -> None:
    timeline = Timeline(VirtualClock().now)

    def work() -> None:
        for _ in range(200):
            with timeline.working("stage", 1) as stamp:
                timeline.discard(stamp)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(timeline.intervals) == 800
    assert {kept.cancelled for kept in timeline.intervals} == {1}


def test_it_is_drawn_in_a_line_each() -> None:
    found = drawn(
        [
            Interval("draft", 0.0, 5.0, 1),
            Interval("draft", 5.0, 7.0, 1, 1),
            Interval("target", 2.0, 10.0, 1),
        ],
        10,
    )
    assert found.splitlines() == [" draft #####xx...", "target ..########"]
    assert drawn([]) == ""
    assert drawn([Interval("a", 1.0, 1.0, 1)], 4).split() == ["a", "...."]
