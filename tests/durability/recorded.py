"""Runs a graph with a journal in memory, and goes on with it from any record as if it had died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.engine.event_stream import assert_well_formed
from tests.engine.virtual_run import Played, WatchedClock, assert_nothing_left, ended
from weft.core.events import Event, RunFinished
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import NumberedRecord, RunHeader
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine import Graph, Node, Run, RunOptions
from weft.engine.runner.recorder import Durability, RunRecorder
from weft.engine.runner.result import RunResult
from weft.engine.scheduler.resume_state import ResumeState
from weft.testing.journal import MemoryJournal

RUN = RunId("test-run")


class Recording(Played):
    """A run that is over, its events, and what the journal has of it."""

    records: list[NumberedRecord]


def record(
    nodes: Sequence[Node],
    *,
    recall: ResumeState | None = None,
    journal: MemoryJournal | None = None,
    durability: Durability = "sync",
    keep: Sequence[str] = (),
    at: Mapping[float, Callable[[Run], object]] | None = None,
    **settings: Any,
) -> Recording:
    """Run `nodes` to the end, recorded, in virtual time. `settings` are `RunOptions`."""
    journal = journal or MemoryJournal()
    clock = WatchedClock()
    events: list[Event] = []
    claim = journal.begin(RunHeader(RUN, "test", "2000-01-01T00:00:00+00:00", "0"))
    recorder = RunRecorder(journal, RUN, durability)
    run = Run(
        Graph("test", nodes, keep=[NodeId(node) for node in keep]),
        RunOptions(**settings),
        run=RUN,
        clock=clock,
        listeners=[events.append],
        recall=recall,
        recorder=recorder,
    )

    async def main() -> RunResult:
        for seconds, act in (at or {}).items():
            asyncio.get_running_loop().call_later(seconds, act, run)
        result = await ended(run)
        await assert_nothing_left(clock, leaked=bool(result.leaked))
        return result

    result = clock.run(main())
    claim.release()
    # That its very end cannot be recorded is known after that was told.
    told = events[-1].reasons if isinstance(events[-1], RunFinished) else ()
    assert result.reasons[len(told) :] in ((), (recorder.lost and recorder.lost.message,))
    assert_well_formed(events, replace(result, reasons=told))
    recording = Recording(result, events)
    recording.records = list(journal.records(RUN))
    return recording


def go_on(nodes: Sequence[Node], records: Sequence[NumberedRecord], **settings: Any) -> Recording:
    """Go on with a run of which only `records` are left; its records are those of both parts."""
    recording = record(nodes, recall=RecordedResumeState(records), **settings)
    part = max((each.part for each in records), default=1) + 1
    later = [
        NumberedRecord(len(records) + n, part, each.record)
        for n, each in enumerate(recording.records, 1)
    ]
    recording.records = [*records, *later]
    return recording
