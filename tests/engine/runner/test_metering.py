"""What a recorded run is measured to take of its machine."""

from __future__ import annotations

import asyncio
import time

import weft
from weft.core.events import Event, RunFinished, RunMeasured
from weft.core.ports.journal import Record
from weft.testing import FakeClock, MemoryJournal


@weft.tool(effect="pure")
def compute(seconds: float) -> float:
    """Compute in a thread for so many processor seconds."""
    began_s = time.thread_time()
    while time.thread_time() - began_s < seconds:
        sum(range(1000))
    return seconds


@weft.tool(effect="pure")
async def hold(seconds: float) -> float:
    """Compute on the event loop, before and after it waits."""
    for _ in range(2):
        began_s = time.thread_time()
        while time.thread_time() - began_s < seconds / 2:
            sum(range(1000))
        await asyncio.sleep(0)
    return seconds


def flow() -> weft.Flow:
    made = weft.Flow("measured")
    computed = made.tool(compute, seconds=0.05)
    held = made.tool(hold, seconds=0.03)
    made.output(computed=computed, held=held)
    return made


def records_of(journal: MemoryJournal) -> list[Record]:
    (summary,) = journal.runs()
    return [numbered.record for numbered in journal.records(summary.run)]


def test_threads_and_the_loop_are_told_before_the_end() -> None:
    journal = MemoryJournal()
    heard: list[Event] = []
    result = flow().run_sync(journal=journal, listeners=[heard.append])
    assert result.status == "succeeded"
    assert not any(isinstance(event, RunMeasured) for event in heard)
    events = records_of(journal)
    (measured,) = [event for event in events if isinstance(event, RunMeasured)]
    assert isinstance(events[-1], RunFinished)
    assert events[-2] is measured
    (cpu_s,) = measured.cpu_s.values()
    assert cpu_s >= 0.05
    held = max(seconds for _, seconds in measured.loop_s.values())
    assert held >= 0.03
    assert measured.loop_cpu_s >= held
    assert sum(count for count, _ in measured.loop_s.values()) == 2
    assert measured.cores >= 1


def test_virtual_time_is_not_measured() -> None:
    journal, clock = MemoryJournal(), FakeClock()
    made = weft.Flow("virtual")
    made.output(held=made.tool(hold, seconds=0.0))
    clock.run(made.run(clock=clock, journal=journal))
    assert RunMeasured not in {type(record) for record in records_of(journal)}
