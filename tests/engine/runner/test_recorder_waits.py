"""A journal that cannot be written to for the moment: the run waits for it, and is suspended."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.engine.virtual_run import WatchedClock as Clock
from tests.engine.virtual_run import after, ended, node
from weft.core.calls import CallId, ToolCalled
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter, Record, RunHeader
from weft.durability.journal.sqlite import SqliteJournal
from weft.durability.journal.sqlite import journal as module
from weft.engine import Graph, Inputs, Node, NodeContext, Run
from weft.engine.runner.recorder import RunRecorder
from weft.engine.runner.result import RunResult
from weft.testing.journal import MemoryJournal

RUN = RunId("run-1")
HEADER = RunHeader(RUN, "waits", "2026-01-01T00:00:00+00:00", "0")


class Locked(MemoryJournal):
    """Is locked from the second append on, for so many tries that wait; then it is free."""

    def __init__(self, tries: int, quick: bool = True) -> None:
        super().__init__()
        self.quick = quick  # type: ignore[misc]
        self.tries = 0
        self._left = tries
        self._first = True

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        if not self._first and self._left:
            self._left -= wait
            self.tries += wait
            raise StoreError("it is locked", retryable=True)
        self._first = False
        super().append(run, records, wait=wait)

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        if self._left and not self._first:
            raise StoreError("it is locked", retryable=True)
        return super().letters(run, wait=wait)


def watched(recorder: RunRecorder, clock: Clock) -> RunRecorder:
    """Time passes as it does while the recorder's thread works, and jumps while it waits."""
    working: set[asyncio.Future[Any]] = set()
    in_thread = recorder._in_thread

    def noted(work: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        future = in_thread(work, *arguments)
        working.add(future)
        future.add_done_callback(working.discard)
        return future

    recorder._in_thread = noted  # type: ignore[method-assign]
    clock.busy = lambda: bool(working)
    return recorder


def played(journal: Journal, nodes: list[Node], patience_s: float) -> tuple[RunResult, RunRecorder]:
    """A run of `nodes` to its end, in virtual time."""
    clock = Clock()

    async def main() -> tuple[RunResult, RunRecorder]:
        journal.begin(HEADER)
        recorder = watched(RunRecorder(journal, RUN, patience_s=patience_s), clock)
        run = Run(Graph("waits", nodes), run=RUN, clock=clock, recorder=recorder)
        return await ended(run), recorder

    return clock.run(main())


@pytest.mark.parametrize("quick", [True, False])
def test_a_run_waits_for_its_journal_while_what_runs_goes_on(quick: bool) -> None:
    done: list[str] = []

    def begins(name: str, seconds: float) -> Node:
        async def work(_: NodeContext, __: Inputs) -> str:
            await asyncio.sleep(seconds)
            done.append(name)
            return name

        return node(name, work, *(["a"] if name == "c" else []))

    journal = Locked(6, quick)
    nodes = [begins("a", 1.0), begins("b", 2.0), begins("c", 0.0)]
    result, recorder = played(journal, nodes, 300.0)
    assert (result.status, result.reasons) == ("succeeded", ())
    assert (recorder.lost, recorder.suspended) == (None, False)
    assert done == ["a", "b", "c"], "b went on, and c waited"
    assert journal.tries == 6
    assert journal.summary(RUN).standing == "succeeded"


@pytest.mark.parametrize("quick", [True, False])
def test_after_the_time_it_may_take_the_run_is_suspended(quick: bool) -> None:
    journal = Locked(10**6, quick)
    result, recorder = played(journal, [node("a", after(1, 1)), node("b", after(1, 2), "a")], 60.0)
    assert recorder.suspended
    assert result.status == "cancelled"
    assert any("the run is suspended" in reason for reason in result.reasons), result.reasons
    assert result.wall_s >= 60.0
    assert 8 < journal.tries < 30, "the waits grow"
    assert "weft resume run-1" in str(recorder.lost and recorder.lost.hint)
    assert journal.summary(RUN).ended_wall == "", "in its record it has not ended"


def test_a_journal_that_is_broken_for_good_is_not_waited_for() -> None:
    class Broken(MemoryJournal):
        def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
            raise StoreError("it is no journal any more")

    result, recorder = played(Broken(), [node("a", after(1, 1))], 60.0)
    assert not recorder.suspended
    assert result.status == "failed"
    assert result.wall_s < 60.0


def test_a_call_that_must_not_be_repeated_is_not_made_before_its_intent_is_kept() -> None:
    journal = Locked(3)
    intent = ToolCalled(NodeId("a"), 1, CallId("tool:x#0"), "t", {}, "once", "k", 0.0)
    tries: list[int] = []
    clock = Clock()

    async def main() -> RunResult:
        journal.begin(HEADER)
        recorder = watched(RunRecorder(journal, RUN, patience_s=60.0), clock)

        async def work(_: NodeContext, __: Inputs) -> str:
            await recorder.write(intent, durable=True)
            tries.append(journal.tries)
            return "made"

        run = Run(Graph("waits", [node("a", work)]), run=RUN, clock=clock, recorder=recorder)
        return await ended(run)

    assert clock.run(main()).status == "succeeded"
    assert tries == [3]


def test_a_file_that_another_process_has_locked_long_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.01)
    path = tmp_path / "journal.sqlite"
    tries: list[bool] = []
    with (
        closing(SqliteJournal(path)) as journal,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        append = journal.append

        def counted(run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
            tries.append(wait)
            if tries.count(True) == 3 and other.in_transaction:
                other.execute("ROLLBACK")
            append(run, records, wait=wait)

        monkeypatch.setattr(journal, "append", counted)

        async def locks(_: NodeContext, __: Inputs) -> str:
            other.execute("BEGIN IMMEDIATE")
            return "locked"

        result, recorder = played(journal, [node("a", locks), node("b", after(1, 2), "a")], 300.0)
    assert (result.status, recorder.lost) == ("succeeded", None)
    assert tries.count(True) >= 3


class PollingAtItsEnd(RunRecorder):
    """Reads signals in its thread just when it is closed, as its timer may have it."""

    async def close(self) -> StoreError | None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._poll()
        return await super().close()


def test_a_closed_recorder_polls_no_more() -> None:
    journal, clock = Locked(0, quick=False), Clock()
    journal.begin(HEADER)
    recorder = PollingAtItsEnd(journal, RUN)

    async def value(_: NodeContext, __: Inputs) -> int:
        return 1

    result = clock.run(Run(Graph("waits", [node("a", value)]), recorder=recorder, run=RUN).wait())
    assert result.status == "succeeded"
    assert not recorder._timers
