"""What every `Journal` must do. Subclass, say how to make one, and let pytest collect it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from weft.core.calls import CallId, ModelCalled, ToolReturned
from weft.core.codec import Opaque
from weft.core.errors import RunBusy, RunExists, StoreError, UnknownReference
from weft.core.events import (
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeLogged,
    Outcome,
    RunFinished,
    RunResumed,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports import Clock, ModelRequest
from weft.core.ports.conversations import ConversationStore, StoredThread, ThreadSummary
from weft.core.ports.journal import Journal, Letter, Losses, NumberedRecord, Record, RunHeader
from weft.core.values import Message, Usage
from weft.testing import FakeClock

RUN, OTHER = RunId("run-1"), RunId("run-2")
ASK, TELL = NodeId("ask"), NodeId("tell")
WALL = "2026-01-01T00:00:00+00:00"
DONE = RunFinished("succeeded", Usage(), (), 2.0)


def header(run: RunId = RUN, **rest: Any) -> RunHeader:
    return RunHeader(run, rest.pop("flow", "flow"), rest.pop("wall", WALL), "0.1.0", **rest)


def line(number: int) -> NodeLogged:
    return NodeLogged(TELL, f"line {number}", float(number))


def returned(value: Any) -> ToolReturned:
    return ToolReturned(TELL, 1, CallId("tool:0#0"), value, None, "done", 1.0)


def noise(seed: str) -> str:
    """Text that no compression makes small."""
    return Random(seed).randbytes(30_000).hex()


def read(journal: Journal, run: RunId = RUN, **rest: Any) -> list[Record]:
    return [numbered.record for numbered in journal.records(run, **rest)]


class JournalConformance:
    """The suite."""

    def make(self, clock: Clock) -> Journal:
        """A new, empty journal whose wall time is `clock`'s."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def journal(self, clock: FakeClock) -> Iterator[Journal]:
        with closing(self.make(clock)) as journal:
            yield journal

    def test_records_come_back_in_order_with_their_numbers(self, journal: Journal) -> None:
        journal.begin(header())
        journal.append(RUN, [line(1), line(2)])
        journal.append(RUN, [])
        journal.append(RUN, [line(3)])
        assert list(journal.records(RUN)) == [NumberedRecord(n, 1, line(n)) for n in (1, 2, 3)]

    def test_reading_begins_and_ends_anywhere(self, journal: Journal) -> None:
        journal.begin(header())
        numbers = range(1, 201)
        for start in range(0, 200, 4):
            journal.append(RUN, [line(n) for n in numbers[start : start + 4]])
        for after in (0, 1, 3, 4, 5, 7, 130, 199, 200, 201):
            for limit in (None, 0, 1, 5, 70):
                found = list(journal.records(RUN, after, limit))
                expected = numbers[after:][:limit]
                assert [numbered.seq for numbered in found] == list(expected), (after, limit)
                assert [numbered.record for numbered in found] == [line(n) for n in expected]

    def test_a_sound_run_lacks_nothing(self, journal: Journal) -> None:
        claim = journal.begin(header())
        journal.append(RUN, [line(1), returned("x" * 999)])
        claim.release()
        assert journal.losses(RUN) == Losses()
        found = journal.salvage(RUN)
        assert found.header == header()
        assert list(found.records) == list(journal.records(RUN))
        assert found.problems == ()
        for ask in (journal.losses, journal.salvage):
            with pytest.raises(UnknownReference):
                ask(RunId("nobody's"))

    def test_runs_do_not_see_one_another(self, journal: Journal) -> None:
        journal.begin(header())
        journal.begin(header(OTHER))
        journal.append(RUN, [line(1)])
        journal.append(OTHER, [line(2)])
        journal.append(RUN, [line(3)])
        assert read(journal) == [line(1), line(3)]
        assert read(journal, OTHER) == [line(2)]

    def test_ids_are_taken_where_a_run_has_begun(self, journal: Journal) -> None:
        journal.begin(header())
        assert journal.taken([OTHER, RUN]) == {RUN}
        assert journal.taken([]) == frozenset()

    def test_headers_come_back(self, journal: Journal) -> None:
        full = header(
            inputs={"topic": "tides", "$ref": [1, None]},
            document={"flow.yaml": "a: 1\n" * 500, "ü.yaml": ""},
            settings={"limits": {"model": 4}},
            secrets=("API_KEY",),
        )
        journal.begin(full)
        assert journal.header(RUN) == full

    def test_what_is_kept_is_nobodys_object(self, journal: Journal) -> None:
        journal.begin(header())
        value = {"list": [1]}
        journal.append(RUN, [returned(value)])
        value["list"].append(2)
        first = read(journal)[0]
        assert first == returned({"list": [1]})
        assert isinstance(first, ToolReturned)
        first.value["list"].append(3)
        assert read(journal) == [returned({"list": [1]})]

    def test_long_and_odd_values_come_back(self, journal: Journal) -> None:
        journal.begin(header())
        text = "the tide is high\x00\ud800 ü 🌊 " * 200
        value = {"rows": [(n, text[:n], {n: {n}}) for n in range(300)], "text": text, "b": b"\xff"}
        messages = tuple(Message("user", f"{n}: {text}") for n in range(40))
        called = ModelCalled(TELL, 1, CallId("model:0#0"), "m", ModelRequest(messages), 1.0)
        records: list[Record] = [returned(value), called, returned(value)]
        journal.append(RUN, records)
        assert read(journal) == records
        assert not journal.check()

    def test_foreign_objects_are_told_of(self, journal: Journal) -> None:
        journal.begin(header())
        journal.append(RUN, [returned([1, object])])
        (record,) = read(journal)
        assert isinstance(record, ToolReturned)
        assert record.value == [1, Opaque("builtins.type", "<class 'object'>")]

    def test_a_batch_is_kept_whole_or_not_at_all(self, journal: Journal) -> None:
        journal.begin(header())
        wrong = NodeLogged(TELL, 3, 1.0)  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="NodeLogged"):
            journal.append(RUN, [line(1), wrong])
        journal.append(RUN, [line(2)])
        assert list(journal.records(RUN)) == [NumberedRecord(1, 1, line(2))]

    def test_a_run_is_begun_once(self, journal: Journal) -> None:
        journal.begin(header())
        journal.append(RUN, [line(1)])
        with pytest.raises(RunExists, match="run-1"):
            journal.begin(header())
        journal.append(RUN, [line(2)])
        assert read(journal) == [line(1), line(2)]

    def test_a_run_has_one_holder_at_a_time(self, journal: Journal) -> None:
        claim = journal.begin(header())
        with pytest.raises(RunBusy, match="run-1"):
            journal.claim(RUN)
        claim.release()
        claim.release()
        second = journal.claim(RUN)
        claim.release()
        with pytest.raises(RunBusy):
            journal.claim(RUN)
        second.release()
        journal.claim(RUN).release()

    def test_a_run_that_did_not_begin_is_withdrawn(self, journal: Journal) -> None:
        claim = journal.begin(header(inputs={"text": noise("inputs")}))
        journal.send(RUN, Letter("cancel", None, "later"))
        version = journal.version()
        assert journal.withdraw(RUN)
        assert journal.version() != version
        assert not journal.taken([RUN])
        assert not journal.runs()
        claim.release()
        with pytest.raises(StoreError):
            journal.withdraw(RUN)
        journal.begin(header())
        journal.append(RUN, [line(1)])
        assert not journal.withdraw(RUN)
        assert not journal.letters(RUN)
        journal.append(RUN, [line(2)])
        assert read(journal) == [line(1), line(2)]
        assert not journal.check()
        assert not journal.lost_runs()

    def test_a_run_is_withdrawn_by_its_holder_alone(self, journal: Journal) -> None:
        claim = journal.begin(header())
        claim.release()
        with pytest.raises(StoreError):
            journal.withdraw(RUN)
        journal.claim(RUN)
        assert journal.withdraw(RUN)
        journal.begin(header()).release()

    def test_only_the_holder_writes(self, journal: Journal) -> None:
        claim = journal.begin(header())
        journal.append(RUN, [line(1)])
        claim.release()
        with pytest.raises(StoreError, match="claimed"):
            journal.append(RUN, [line(2)])
        journal.claim(RUN)
        journal.append(RUN, [line(3)])
        assert read(journal) == [line(1), line(3)]

    def test_what_is_unknown_names_the_closest(self, journal: Journal) -> None:
        journal.begin(header())
        unknown = RunId("run-11")
        for ask in (journal.header, journal.records, journal.claim, journal.summary):
            with pytest.raises(UnknownReference, match="run-1"):
                ask(unknown)
        with pytest.raises(UnknownReference):
            journal.letters(unknown)
        with pytest.raises(UnknownReference):
            journal.pending_letters(unknown)
        with pytest.raises(UnknownReference):
            journal.send(unknown, Letter("cancel", None))
        with pytest.raises(UnknownReference):
            journal.prune(runs=[unknown])

    def test_runs_are_listed_the_latest_first(self, journal: Journal) -> None:
        journal.begin(header(flow="a"))
        journal.begin(header(OTHER, flow="b"))
        journal.begin(header(RunId("run-3"), flow="a"))
        assert [s.run for s in journal.runs()] == ["run-3", "run-2", "run-1"]
        assert [s.run for s in journal.runs(flow="a")] == ["run-3", "run-1"]
        assert [s.run for s in journal.runs(limit=2)] == ["run-3", "run-2"]
        assert list(journal.runs(flow="c")) == []

    def test_a_summary_says_how_a_run_stands(self, journal: Journal, clock: FakeClock) -> None:
        claim = journal.begin(header())
        assert journal.summary(RUN).standing == "running"
        journal.append(RUN, [HumanAsked(ASK, "?", {}, 1.0), HumanAsked(TELL, "?", {}, 1.0)])
        summary = journal.summary(RUN)
        assert (summary.standing, summary.asking) == ("asking", (ASK, TELL))
        journal.append(RUN, [HumanAnswered(ASK, 2.0, value="yes")])
        assert journal.summary(RUN).asking == (TELL,)
        claim.release()
        summary = journal.summary(RUN)
        assert (summary.standing, summary.asking) == ("interrupted", (TELL,))
        journal.claim(RUN)
        journal.append(RUN, [RunResumed(RUN, 2, WALL, 3.0)])
        journal.append(RUN, [NodeFinished(TELL, Outcome("cancelled"), 3.0)])
        assert journal.summary(RUN).standing == "running"
        journal.append(RUN, [DONE])
        summary = journal.summary(RUN)
        assert (summary.standing, summary.parts, summary.records) == ("succeeded", 2, 6)
        assert summary.ended_wall == clock.wall().isoformat()
        assert list(journal.runs()) == [summary]

    def test_a_question_that_ends_as_soon_as_it_is_asked_is_none(self, journal: Journal) -> None:
        journal.begin(header())
        ended = NodeFinished(ASK, Outcome("cancelled"), 1.0)
        journal.append(RUN, [line(1), HumanAsked(ASK, "?", {}, 1.0), ended])
        assert journal.summary(RUN).asking == ()
        journal.append(RUN, [ended, HumanAsked(ASK, "?", {}, 1.0)])
        assert journal.summary(RUN).asking == (ASK,)

    def test_a_run_that_ended_may_go_on(self, journal: Journal) -> None:
        journal.begin(header())
        journal.append(RUN, [line(1), RunFinished("failed", Usage(), ("no",), 2.0)])
        assert journal.summary(RUN).standing == "failed"
        records: list[Record] = [RunResumed(RUN, 2, WALL, 3.0), line(2), DONE]
        journal.append(RUN, records)
        assert [n.part for n in journal.records(RUN)] == [1, 1, 2, 2, 2]
        summary = journal.summary(RUN)
        assert (summary.standing, summary.parts) == ("succeeded", 2)

    def test_the_version_tells_of_changes(self, journal: Journal) -> None:
        versions = [journal.version()]

        def changed() -> bool:
            versions.append(journal.version())
            return versions[-1] != versions[-2]

        assert not changed()
        journal.begin(header())
        assert changed()
        journal.append(RUN, [line(1)])
        assert changed()
        read(journal)
        journal.runs()
        assert not changed()
        journal.send(RUN, Letter("cancel", None, "enough"))
        assert changed()

    def test_letters_are_given_out_once_in_order(self, journal: Journal) -> None:
        journal.begin(header())
        journal.begin(header(OTHER))
        letters = [Letter("answer", ASK, {"ok": True}), Letter("cancel", None, "enough")]
        for letter in letters:
            journal.send(RUN, letter)
        assert list(journal.letters(OTHER)) == []
        assert list(journal.letters(RUN)) == letters
        assert list(journal.letters(RUN)) == []
        journal.send(RUN, letters[0])
        assert list(journal.letters(RUN)) == letters[:1]

    def test_pending_letters_are_read_until_they_are_settled(self, journal: Journal) -> None:
        claim = journal.begin(header())
        first, second = Letter("answer", ASK, 1), Letter("answer", TELL, 2)
        assert list(journal.pending_letters(RUN)) == []
        journal.append(RUN, [HumanAsked(ASK, "?", {}, 1.0), HumanAsked(TELL, "?", {}, 1.0)])
        journal.send(RUN, first)
        journal.send(RUN, second)
        assert list(journal.pending_letters(RUN)) == [first, second]
        assert list(journal.letters(RUN)) == [first, second]  # none was taken
        assert list(journal.pending_letters(RUN)) == [first, second]
        journal.append(RUN, [HumanAnswered(ASK, 2.0, value=1)])
        assert list(journal.pending_letters(RUN)) == [second]
        claim.release()

    def test_a_letter_that_was_not_heeded_is_not_lost(self, journal: Journal) -> None:
        claim = journal.begin(header())
        heeded, unheeded = Letter("answer", ASK, 1), Letter("answer", TELL, 2)
        journal.append(RUN, [HumanAsked(ASK, "?", {}, 1.0), HumanAsked(TELL, "?", {}, 1.0)])
        journal.send(RUN, heeded)
        journal.send(RUN, unheeded)
        assert list(journal.letters(RUN)) == [heeded, unheeded]
        journal.append(RUN, [HumanAnswered(ASK, 2.0, value=1)])
        claim.release()
        claim = journal.claim(RUN)
        assert list(journal.letters(RUN)) == [unheeded]
        journal.append(RUN, [NodeFinished(TELL, Outcome("succeeded", 2), 3.0)])
        claim.release()
        claim = journal.claim(RUN)
        assert list(journal.letters(RUN)) == []
        journal.send(RUN, Letter("cancel", None))
        journal.append(RUN, [DONE])
        assert list(journal.letters(RUN)) == []

    def test_a_word_on_a_call_stays_until_the_run_has_succeeded(self, journal: Journal) -> None:
        claim = journal.begin(header())
        word = Letter("confirm", TELL, {"call": 1, "said": "repeat", "value": None})
        for letter in (word, Letter("cancel", None)):
            journal.send(RUN, letter)
        journal.letters(RUN)
        failed = replace(DONE, status="failed")
        journal.append(RUN, [NodeFinished(TELL, Outcome("failed"), 1.0), failed])
        claim.release()
        claim = journal.claim(RUN)
        assert list(journal.letters(RUN)) == [word]
        journal.append(RUN, [DONE])
        claim.release()
        journal.claim(RUN)
        assert list(journal.letters(RUN)) == []

    def _three(self, journal: Journal, clock: FakeClock) -> list[RunId]:
        runs = [RunId(f"run-{number}") for number in (1, 2, 3)]
        for run in runs:
            claim = journal.begin(header(run, wall=clock.wall().isoformat()))
            journal.append(run, [returned("shared by all " * 100), returned(noise(run))])
            journal.append(run, [DONE])
            claim.release()
            clock.advance(timedelta(days=1).total_seconds())
        return runs

    def test_pruning_keeps_the_latest(self, journal: Journal, clock: FakeClock) -> None:
        runs = self._three(journal, clock)
        pruned = journal.prune(keep=1)
        assert set(pruned.runs) == set(runs[:2])
        assert pruned.freed_bytes > 0
        assert [s.run for s in journal.runs()] == runs[2:]
        assert read(journal, runs[2])[1] == returned(noise("run-3"))
        assert not journal.check()

    def test_pruning_by_age(self, journal: Journal, clock: FakeClock) -> None:
        runs = self._three(journal, clock)
        pruned = journal.prune(older_than_s=timedelta(days=1.5).total_seconds())
        assert set(pruned.runs) == set(runs[:2])

    def test_pruning_by_name(self, journal: Journal, clock: FakeClock) -> None:
        runs = self._three(journal, clock)
        assert journal.prune(runs=[runs[1]]).runs == (runs[1],)
        assert [s.run for s in journal.runs()] == [runs[2], runs[0]]
        with pytest.raises(UnknownReference):
            journal.records(runs[1])
        assert read(journal, runs[0])[0] == returned("shared by all " * 100)
        journal.begin(header(runs[1]))
        assert read(journal, runs[1]) == []

    def test_pruning_by_size(self, journal: Journal, clock: FakeClock) -> None:
        runs = self._three(journal, clock)
        left = journal.prune().left_bytes
        assert journal.prune(max_bytes=left).runs == ()
        pruned = journal.prune(max_bytes=left - 1)
        assert pruned.runs == (runs[0],)
        assert pruned.left_bytes < left
        assert set(journal.prune(max_bytes=0).runs) == set(runs[1:])

    def test_a_held_run_is_not_pruned(self, journal: Journal, clock: FakeClock) -> None:
        runs = self._three(journal, clock)
        claim = journal.claim(runs[0])
        with pytest.raises(RunBusy, match="run-1"):
            journal.prune(runs=runs)
        assert len(journal.runs()) == 3
        assert set(journal.prune(keep=0).runs) == set(runs[1:])
        assert journal.prune(max_bytes=0).runs == ()
        assert read(journal, runs[0])[1] == returned(noise("run-1"))
        claim.release()
        assert journal.prune(keep=0).runs == (runs[0],)

    def test_closing_twice_is_harmless(self, journal: Journal) -> None:
        journal.begin(header())
        journal.close()
        journal.close()

    def test_threads_are_appended_once_for_each_key(self, journal: Journal) -> None:
        assert isinstance(journal, ConversationStore)
        assert journal.read_thread("a") == StoredThread()
        assert journal.append_to_thread("a", "k1", ["one", "two"])
        assert not journal.append_to_thread("a", "k1", ["one", "two"])
        assert journal.append_to_thread("b", "k1", ["other \u0001é"])
        assert journal.append_to_thread("a", "k2", ["three"], ("short", 2))
        assert journal.append_to_thread("a", "k3", ["four"], ("older", 1))
        assert journal.read_thread("a") == StoredThread(("one", "two", "three", "four"), "short", 2)
        assert journal.threads() == [ThreadSummary("a", 4, 2), ThreadSummary("b", 1)]
        assert journal.delete_thread("a")
        assert not journal.delete_thread("a")
        assert journal.threads() == [ThreadSummary("b", 1)]

    def test_threads_grow_from_many_writers_at_once(self, journal: Journal) -> None:
        assert isinstance(journal, ConversationStore)

        def write(writer: int) -> None:
            for number in range(5):
                texts = [f"{writer}.{number}", "answer"]
                journal.append_to_thread("a", f"{writer}.{number}", texts)

        with ThreadPoolExecutor(4) as writers:
            list(writers.map(write, range(4)))
        found = journal.read_thread("a").messages
        assert found[1::2] == ("answer",) * 20
        assert sorted(found[::2]) == [f"{w}.{n}" for w in range(4) for n in range(5)]
