"""When what happens is in the journal, and what becomes of a run that cannot be recorded."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.durability.journal.test_resume_state import Works, appending, assert_same, chain
from tests.durability.recorded import RUN, Recording, go_on, record
from tests.engine.virtual_run import WatchedClock as Clock
from tests.engine.virtual_run import after, assert_nothing_left, ended, node
from weft.core.calls import CallId, ModelStreamed, ToolCalled
from weft.core.errors import StoreError
from weft.core.events import (
    Event,
    HumanAnswered,
    NodeFinished,
    NodeStarted,
    NodeStreamed,
    RunFinished,
    RunMeasured,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports import TextDelta
from weft.core.ports.journal import Letter, Record, RunHeader
from weft.durability.journal.sqlite import SqliteJournal
from weft.engine import AskHuman, Graph, Inputs, Node, NodeContext, Run
from weft.engine.runner.recorder import Durability, RunRecorder
from weft.engine.runner.result import RunResult
from weft.testing.journal import MemoryJournal


class Broken(MemoryJournal):
    """Fails from the `number`-th append (from 1) on, as a full disk would."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._left = number

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        self._left -= 1
        if self._left <= 0:
            raise StoreError("the disk is full", hint="make room")
        super().append(run, records, wait=wait)


class Slow(MemoryJournal):
    """Must not be written to in the event loop; tells what it was given, and waits for a word."""

    quick = False

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.written: list[Record] = []
        self.threads: set[str] = set()

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        self.threads.add(threading.current_thread().name)
        self.may_write.wait(5)
        super().append(run, records, wait=wait)
        self.written += records


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_journal_that_fails_ends_the_run_which_can_be_resumed(
    at: int, durability: Durability
) -> None:
    whole = record(chain(Works()))
    broken = Broken(at)
    found = record(chain(Works()), journal=broken, durability=durability)
    told = "the run cannot be recorded: the disk is full"
    assert (told in found.result.reasons) == (len(found.records) < len(whole.records))
    if durability == "sync":  # in the fourth and fifth, all nodes had ended
        assert found.result.status == ("failed" if at < 4 else "succeeded")
    assert_same(go_on(chain(Works()), found.records), whole)


def test_nothing_starts_before_the_reason_is_recorded() -> None:
    journal = MemoryJournal()
    seen: list[tuple[str, set[str]]] = []

    def looks(name: str) -> Callable[..., Any]:
        async def work(_: NodeContext, __: Inputs) -> str:
            records = [each.record for each in journal.records(RUN)]
            done = {r.node for r in records if isinstance(r, NodeFinished)}
            seen.append((name, set(done)))
            return name

        return work

    nodes = [node("a", looks("a")), node("b", looks("b"), "a"), node("c", looks("c"), "a", "b")]
    record(nodes, journal=journal)
    assert seen == [("a", set()), ("b", {"a"}), ("c", {"a", "b"})]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_all_that_is_told_is_recorded_in_order(durability: Durability) -> None:
    found = record(appending(Works()), durability=durability)
    assert [each.record for each in found.records] == found.events
    assert [each.seq for each in found.records] == list(range(1, len(found.events) + 1))


def test_nothing_is_recorded_where_that_is_asked_for() -> None:
    found = record(chain(Works()), durability="none")
    assert found.result.status == "succeeded"
    assert found.records == []


def test_with_exit_only_the_end_and_questions_are_written() -> None:
    journal = MemoryJournal()
    writes: list[int] = []
    append = journal.append
    journal.append = lambda run, records, **_: (writes.append(len(records)), append(run, records))[
        1
    ]  # type: ignore[method-assign, func-returns-value, assignment]

    async def ask(_: NodeContext, __: Inputs) -> AskHuman:
        return AskHuman("sure?")

    nodes = [node("a", after(1, 1)), node("b", ask, "a"), node("c", after(1, 2), "b")]
    found = record(
        nodes, journal=journal, durability="exit", at={5: lambda run: run.answer(NodeId("b"), 1)}
    )
    assert len(writes) == 3  # the question; all nodes; the end
    assert sum(writes) == len(found.records)


def test_a_slow_journal_is_written_to_in_a_thread_while_works_go_on() -> None:
    journal = Slow()
    begun: list[str] = []

    def begins(name: str) -> Callable[..., Any]:
        async def work(_: NodeContext, __: Inputs) -> str:
            begun.append(name)
            return name

        return work

    async def main() -> RunResult:
        journal.begin(RunHeader(RUN, "slow", "2026-01-01T00:00:00+00:00", "0"))
        graph = Graph("slow", [node("a", begins("a")), node("b", begins("b"), "a")])
        run = asyncio.create_task(Run(graph, run=RUN, recorder=RunRecorder(journal, RUN)).wait())
        while not journal.threads:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert begun == []  # the start of the run is not recorded yet
        journal.may_write.set()
        return await run

    result = asyncio.run(main())
    assert result.status == "succeeded"
    assert begun == ["a", "b"]
    assert all(name.startswith("weft-journal") for name in journal.threads)
    assert isinstance(journal.written[0], RunStarted)
    assert isinstance(journal.written[-1], RunFinished)


def test_while_another_process_writes_the_loop_goes_on_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    begun: list[str] = []
    events: list[Event] = []
    waits: set[tuple[bool, bool]] = set()

    class Watched(SqliteJournal):
        """Notes whether it is in the main thread, and whether it waits."""

        def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
            waits.add((threading.current_thread() is threading.main_thread(), wait))
            super().append(run, records, wait=wait)

    async def work(context: NodeContext, _: Inputs) -> str:
        begun.append(context.node)
        return context.node

    async def main(journal: SqliteJournal, other: sqlite3.Connection) -> RunResult:
        claim = journal.begin(RunHeader(RUN, "busy", "2026-01-01T00:00:00+00:00", "0"))
        recorder = RunRecorder(journal, RUN)
        graph = Graph("busy", [node("a", work), node("b", work, "a")])
        other.execute("BEGIN IMMEDIATE")
        run = Run(graph, run=RUN, recorder=recorder, listeners=[events.append])
        waiting = asyncio.create_task(run.wait())
        for _ in range(20):
            await asyncio.sleep(0)
        assert begun == []  # the start of the run is not recorded yet
        assert (True, False) in waits
        other.execute("ROLLBACK")
        result = await waiting
        claim.release()
        return result

    with closing(Watched(path)) as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            result = asyncio.run(main(journal, other))
        assert (result.status, result.reasons, begun) == ("succeeded", (), ["a", "b"])
        assert waits == {(True, False), (False, True)}
        kept = [each.record for each in journal.records(RUN)]
        assert [record for record in kept if not isinstance(record, RunMeasured)] == events


def test_a_look_that_comes_at_a_bad_moment_is_made_again() -> None:
    class Busy(MemoryJournal):
        """The first who takes a letter without waiting is refused."""

        refused = False

        def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
            if not wait and not self.refused:
                self.refused = True
                raise StoreError("somebody else is writing", retryable=True)
            return super().letters(run, wait=wait)

    journal = Busy()
    letter = Letter("answer", NodeId("ask"), "yes")
    found = record(
        [node("ask", _ask)], journal=journal, at={1.0: lambda _: journal.send(RUN, letter)}
    )
    assert journal.refused
    assert found.value("ask") == "yes"


@pytest.mark.parametrize("quick", [True, False])
def test_what_must_be_durable_is_written_with_all_that_came_before(quick: bool) -> None:
    journal = Slow()
    journal.quick = quick
    journal.may_write.set()
    intent = ToolCalled(NodeId("a"), 1, CallId("tool:x#0"), "t", {}, "once", "k", 0.0)

    async def main() -> None:
        journal.begin(RunHeader(RUN, "test", "2026-01-01T00:00:00+00:00", "0"))
        recorder = RunRecorder(journal, RUN, "exit")

        async def work(context: NodeContext, _: Inputs) -> None:
            context.stream("words")
            await recorder.write(intent, durable=True)
            kinds = [type(each) for each in journal.written]
            assert kinds == [RunStarted, NodeStarted, NodeStreamed, ToolCalled]

        run = Run(Graph("test", [node("a", work)]), run=RUN, recorder=recorder)
        assert (await run.wait()).reasons == ()

    asyncio.run(main())


def test_a_call_that_cannot_be_recorded_is_told_and_the_run_ends() -> None:
    journal = Broken(2)
    clock = Clock()
    told: list[str] = []
    intent = ToolCalled(NodeId("a"), 1, CallId("tool:x#0"), "t", {}, "once", "k", 0.0)

    async def main() -> RunResult:
        journal.begin(RunHeader(RUN, "test", "2026-01-01T00:00:00+00:00", "0"))
        recorder = RunRecorder(journal, RUN)

        async def work(_: NodeContext, __: Inputs) -> None:
            try:
                await recorder.write(intent, durable=True)
            except StoreError as error:
                told.append(error.message)
                raise

        nodes = [node("a", work), node("b", after(9, 1))]
        run = Run(Graph("test", nodes), run=RUN, clock=clock, recorder=recorder)
        result = await ended(run)
        await assert_nothing_left(clock)
        return result

    result = clock.run(main())
    assert told == ["the run cannot be recorded: the disk is full"]
    assert result.status == "failed"
    assert result.outcomes[NodeId("b")].status == "cancelled"


def test_pieces_of_a_stream_that_follow_each_other_are_one_record() -> None:
    async def talk(context: NodeContext, _: Inputs) -> None:
        for word in ("one ", "two ", "three"):
            context.stream(word, 1)
        context.log("and")
        context.stream("four", 1)

    found = record([node("a", talk), node("b", talk)])
    told = [e.record for e in found.records if isinstance(e.record, NodeStreamed)]
    assert [(each.node, each.text, each.tokens) for each in told] == [
        ("a", "one two three", 3),
        ("a", "four", 1),
        ("b", "one two three", 3),
        ("b", "four", 1),
    ]


def test_pieces_of_a_model_keep_their_times() -> None:
    journal = MemoryJournal()
    call = CallId("model:x#0")

    async def main() -> None:
        journal.begin(RunHeader(RUN, "test", "2026-01-01T00:00:00+00:00", "0"))
        recorder = RunRecorder(journal, RUN)
        for at_s in (1.0, 2.0):
            piece = ((at_s, TextDelta(f"{at_s}")),)
            await recorder.write(ModelStreamed(NodeId("a"), 1, call, piece, at_s))
        await recorder.close()

    asyncio.run(main())
    (one,) = [each.record for each in journal.records(RUN)]
    assert isinstance(one, ModelStreamed)
    assert [at_s for at_s, _ in one.deltas] == [1.0, 2.0]


# -- letters -----------------------------------------------------------------------------------


async def _ask(_: NodeContext, __: Inputs) -> AskHuman:
    return AskHuman("sure?")


def test_a_letter_answers_a_question_of_a_run_under_way() -> None:
    journal = MemoryJournal()
    letter = Letter("answer", NodeId("ask"), "yes")
    found = record(
        [node("ask", _ask), node("end", after(1, 2), "ask")],
        journal=journal,
        at={3.0: lambda _: journal.send(RUN, letter)},
    )
    assert found.value("ask") == "yes"
    assert 3.0 <= found.ended_s("ask") <= 3.5
    (answered,) = found.all(HumanAnswered)
    assert answered.value == "yes"


def test_an_answer_that_comes_before_its_question_waits_for_it() -> None:
    journal = MemoryJournal()
    letter = Letter("answer", NodeId("ask"), "yes")
    found = record(
        [node("first", after(5, 1)), node("ask", _ask, "first")],
        journal=journal,
        at={1.0: lambda _: journal.send(RUN, letter)},
    )
    assert found.value("ask") == "yes"
    assert found.ended_s("ask") == 5


@pytest.mark.parametrize(
    ("letter", "statuses"),
    [
        (Letter("cancel", None, "enough"), {"a": "cancelled", "b": "cancelled"}),
        (Letter("cancel", NodeId("a")), {"a": "cancelled", "b": "succeeded"}),
        (Letter("cancel", NodeId("nobody")), {"a": "succeeded", "b": "succeeded"}),
        (Letter("confirm", NodeId("a"), "done"), {"a": "succeeded", "b": "succeeded"}),
    ],
)
def test_a_letter_cancels_a_run_or_a_node_of_it(letter: Letter, statuses: dict[str, str]) -> None:
    journal = MemoryJournal()
    nodes = [node("a", after(5, 1)), node("b", after(6, 1))]
    found = record(nodes, journal=journal, at={1.0: lambda _: journal.send(RUN, letter)})
    assert found.statuses == statuses


def test_the_cancellation_of_a_node_that_is_not_there_yet_waits_for_it() -> None:
    async def later(context: NodeContext, _: Inputs) -> str:
        await asyncio.sleep(3)
        context.append([node("grow/one", after(9, 1))])
        return (await context.outcome(NodeId("grow/one"))).status

    journal = MemoryJournal()
    letter = Letter("cancel", NodeId("grow/one"), "nobody wants it")
    found = record(
        [node("grow", later)],
        journal=journal,
        at={1.0: lambda _: journal.send(RUN, letter)},
    )
    assert found.value("grow") == "cancelled"
    assert found.ended_s("grow/one") <= 3.5


# -- the time of a run in parts ----------------------------------------------------------------


def _cut(found: Recording, at_s: float) -> list[Any]:
    return [each for each in found.records if each.record.at_s <= at_s]


def test_time_goes_on_where_an_earlier_part_stopped() -> None:
    nodes = [node("a", after(3, 1)), node("b", after(4, 2), "a")]
    resumed = go_on(nodes, _cut(record(nodes), 3))
    assert isinstance(resumed.events[0], RunResumed)
    assert resumed.events[0].at_s == 3
    assert resumed.events[-1].at_s == 7
    assert resumed.result.wall_s == 7
    third = go_on(nodes, resumed.records[:-2])
    assert isinstance(third.events[0], RunResumed)
    assert third.events[0].part == 3


def test_the_deadline_of_a_run_counts_the_seconds_of_all_its_parts() -> None:
    nodes = [node("a", after(3, 1)), node("b", after(4, 2), "a")]
    cut = _cut(record(nodes), 3)
    assert go_on(nodes, cut, deadline_s=8).result.status == "succeeded"
    late = go_on(nodes, cut, deadline_s=6)
    assert late.statuses == {"a": "succeeded", "b": "cancelled"}
    assert late.result.wall_s == 6


def test_what_was_cancelled_with_its_run_is_done_when_the_run_is_resumed() -> None:
    works = Works()
    found = record(chain(works), at={1.5: lambda run: run.cancel("enough")})
    assert found.result.status == "cancelled"
    again = Works()
    resumed = go_on(chain(again), found.records)
    assert_same(resumed, record(chain(Works())))
    assert set(again.done) == {"c", "d"}


def test_what_failed_is_tried_again_when_its_run_had_ended() -> None:
    better: list[bool] = []

    async def shaky(_: NodeContext, __: Inputs) -> int:
        if not better:
            raise ValueError("not now")
        return 5

    def nodes(works: Works) -> list[Node]:
        return [
            node("a", works(after(1, 1))),
            node("shaky", works(shaky), "a"),
            node("end", works(after(1)), "shaky"),
        ]

    found = record(nodes(Works()))
    assert found.statuses == {"a": "succeeded", "shaky": "failed", "end": "skipped"}
    better.append(True)
    again = Works()
    resumed = go_on(nodes(again), found.records)
    assert resumed.result.status == "succeeded"
    assert resumed.value("end") == 5
    assert dict(again.done) == {"shaky": 1, "end": 1}


def test_a_changed_input_or_identity_runs_a_node_and_what_depends_on_it_anew() -> None:
    def nodes(works: Works, factor: int, identity: str = "") -> list[Node]:
        return [
            node("a", works(after(1, 1)), given={"x": 1}, identity=identity),
            node("b", works(after(1, factor)), given={"factor": factor}),
            node("c", works(after(1)), "b"),
        ]

    cut = record(nodes(Works(), 2)).records[:-1]
    for factor, identity, again in ((2, "", set()), (3, "", {"b", "c"}), (2, "new", {"a"})):
        works = Works()
        resumed = go_on(nodes(works, factor, identity), cut)
        assert set(works.done) == again
        assert resumed.value("c") == factor


def test_a_value_that_has_no_exact_record_is_computed_again() -> None:
    class Foreign:
        pass

    def nodes(works: Works) -> list[Node]:
        return [node("a", works(after(1, Foreign()))), node("b", works(after(1, 2)), "a")]

    works = Works()
    resumed = go_on(nodes(works), record(nodes(Works())).records[:-1])
    assert set(works.done) == {"a", "b"}
    assert isinstance(resumed.value("a"), Foreign)
