"""What every `RunQueue` must do. Subclass, say how to make a journal, and let pytest collect it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import RunBusy, RunExists, UnknownReference
from weft.core.events import HumanAnswered, HumanAsked, RunFinished, RunResumed
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter, RunHeader
from weft.core.ports.queue import (
    QueueTerms,
    RunQueue,
    RunSchedule,
    TakenRun,
    WorkerEntry,
    holder_name,
    queue_of,
)
from weft.core.values import Usage

ASK = NodeId("ask")
NOW_S = 1_000.0
TERMS = QueueTerms("v1")
FAILED = RunFinished("failed", Usage(), ("no",), 2.0)
DONE = RunFinished("succeeded", Usage(), (), 2.0)


def header(run: str, flow: str = "flow") -> RunHeader:
    return RunHeader(RunId(run), flow, "2026-01-01T00:00:00+00:00", "0.1.0", inputs={"n": run})


class QueueConformance:
    """`open` opens one more journal on the same store, as another process would."""

    def open(self) -> Any:
        raise NotImplementedError

    def expire(self, journal: Any) -> None:
        """The process of `journal` dies: its claims end, and nothing is written."""
        raise NotImplementedError

    @pytest.fixture
    def both(self) -> Iterator[tuple[Journal, Journal]]:
        with closing(self.open()) as one, closing(self.open()) as two:
            yield one, two

    @pytest.fixture
    def journal(self, both: tuple[Journal, Journal]) -> Journal:
        return both[0]

    @pytest.fixture
    def queue(self, journal: Journal) -> RunQueue:
        return queue_of(journal)

    def submit(self, to: RunQueue, /, *runs: str, **terms: Any) -> None:
        for run in runs:
            assert to.submit(header(run), replace(TERMS, **terms))

    def take(
        self, queue: RunQueue, versions: Sequence[str] = ("v1",), now_s: float = NOW_S
    ) -> TakenRun | None:
        return queue.take(("default",), versions, now_s)

    def taken(self, queue: RunQueue, **rest: Any) -> str | None:
        found = self.take(queue, **rest)
        return None if found is None else str(found.run)

    def states(self, queue: RunQueue) -> dict[str, str]:
        return {str(entry.run): entry.state for entry in queue.entries()}

    # -- submission and order ------------------------------------------------------------------

    def test_a_submitted_run_is_recorded_and_waits(self, journal: Journal, queue: RunQueue) -> None:
        self.submit(queue, "a")
        assert journal.header(RunId("a")) == header("a")
        assert journal.summary(RunId("a")).standing == "interrupted"
        entry = queue.entry(RunId("a"))
        assert entry is not None
        assert (entry.state, entry.attempts, entry.terms) == ("queued", 0, TERMS)

    def test_a_key_is_one_run(self, queue: RunQueue) -> None:
        self.submit(queue, "a")
        assert not queue.submit(header("a"), TERMS)
        assert len(queue.entries()) == 1

    def test_a_run_that_exists_is_not_submitted(self, journal: Journal, queue: RunQueue) -> None:
        journal.begin(header("a"))
        assert not queue.submit(header("a"), TERMS)
        assert queue.entry(RunId("a")) is None
        with pytest.raises(RunExists):
            queue.begin(header("a"), TERMS)

    def test_unknown_runs_are_refused(self, journal: Journal, queue: RunQueue) -> None:
        with pytest.raises(UnknownReference):
            queue.entry(RunId("a"))
        with pytest.raises(UnknownReference):
            queue.requeue(RunId("a"))
        journal.begin(header("a"))
        with pytest.raises(UnknownReference, match="not submitted"):
            queue.requeue(RunId("a"))

    def test_priority_then_submission(self, queue: RunQueue) -> None:
        self.submit(queue, "a", "b")
        self.submit(queue, "c", priority=5)
        self.submit(queue, "d", priority=-1)
        listed = [entry.run for entry in queue.entries()]
        taken = [self.taken(queue) for _ in range(4)]
        assert taken == listed == ["c", "a", "b", "d"]
        assert self.taken(queue) is None

    def test_every_order_of_priorities(self) -> None:
        @given(st.lists(st.integers(-2, 2), min_size=1, max_size=6))
        @settings(max_examples=10, deadline=None)
        def check(priorities: list[int]) -> None:
            with closing(self.open()) as journal:
                queue = queue_of(journal)
                version = f"v{next(_NUMBERS)}"
                names = [f"{version}-{place}" for place in range(len(priorities))]
                for name, priority in zip(names, priorities, strict=True):
                    queue.submit(header(name), QueueTerms(version, priority=priority))
                taken = [self.taken(queue, versions=(version,)) for _ in names]
                ranked = sorted(range(len(names)), key=lambda place: (-priorities[place], place))
                assert taken == [names[place] for place in ranked]

        check()

    def test_not_before_its_time(self, queue: RunQueue) -> None:
        self.submit(queue, "a", due_s=NOW_S + 60)
        assert self.taken(queue) is None
        assert queue.wait_s(("default",), ("v1",), NOW_S) == pytest.approx(60)
        assert self.taken(queue, now_s=NOW_S + 60) == "a"

    def test_only_of_a_known_version_and_queue(self, queue: RunQueue) -> None:
        self.submit(queue, "a", version="v2")
        self.submit(queue, "b", queue="slow")
        assert self.taken(queue) is None
        assert self.taken(queue, versions=()) is None
        assert self.taken(queue, versions=("v1", "v2")) == "a"
        found = queue.take(("slow", "default"), ("v1",), NOW_S)
        assert found is not None
        assert found.run == "b"

    # -- claims ----------------------------------------------------------------------------------

    def test_a_taken_run_is_claimed(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.submit(queue_of(one), "a")
        found = self.take(queue_of(one))
        assert found is not None
        assert found.attempts == 1
        assert self.taken(queue_of(two)) is None
        with pytest.raises(RunBusy):
            two.claim(RunId("a"))
        entry = queue_of(two).entry(RunId("a"))
        assert entry is not None
        assert (entry.state, bool(entry.holder)) == ("running", True)
        one.append(RunId("a"), [DONE])
        found.claim.release()
        entry = queue_of(two).entry(RunId("a"))
        assert entry is not None
        assert (entry.state, entry.status, entry.holder) == ("ended", "succeeded", "")
        assert self.taken(queue_of(two)) is None

    def test_a_run_of_a_dead_worker_is_taken_by_another(
        self, both: tuple[Journal, Journal]
    ) -> None:
        one, two = both
        self.submit(queue_of(one), "a")
        assert self.taken(queue_of(one)) == "a"
        self.expire(one)
        found = self.take(queue_of(two))
        assert found is not None
        assert (found.run, found.attempts) == ("a", 2)
        two.append(RunId("a"), [DONE])

    def test_a_run_that_kills_its_workers_is_stopped(self) -> None:
        with ExitStack() as stack:
            for attempt in range(3):
                journal = stack.enter_context(closing(self.open()))
                queue = queue_of(journal)
                if not attempt:
                    self.submit(queue, "a", max_attempts=2)
                    self.submit(queue, "b")
                expected = "a" if attempt < 2 else "b"
                assert self.taken(queue) == expected
                if attempt < 2:
                    self.expire(journal)
            entry = queue.entry(RunId("a"))
            assert entry is not None
            assert entry.state == "stopped"
            assert "2 times" in entry.reason
            queue.requeue(RunId("a"))
            assert self.taken(queue) == "a"

    def test_a_run_that_is_given_back_is_taken_again(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.submit(queue_of(one), "a")
        found = self.take(queue_of(one))
        assert found is not None
        found.claim.release()
        found.claim.release()  # harmless
        assert self.states(queue_of(two)) == {"a": "queued"}
        again = self.take(queue_of(two))
        assert again is not None
        assert again.attempts == 1

    def test_each_run_is_taken_once_by_many_threads(self, both: tuple[Journal, Journal]) -> None:
        names = [f"run-{number}" for number in range(30)]
        self.submit(queue_of(both[0]), *names)

        def drain(place: int) -> list[str]:
            taken: list[str] = []
            misses = 0
            while misses < 3:  # another thread may have had the lock of the row looked at
                found = self.taken(queue_of(both[place % 2]))
                misses = misses + 1 if found is None else 0
                taken += [] if found is None else [found]
            return taken

        with ThreadPoolExecutor(4) as threads:
            taken = [run for some in threads.map(drain, range(4)) for run in some]
        assert sorted(taken) == sorted(names)

    def test_a_run_that_begins_here_is_continued_elsewhere(
        self, both: tuple[Journal, Journal]
    ) -> None:
        one, two = both
        queue_of(one).begin(header("a"), TERMS)
        assert self.taken(queue_of(two)) is None
        self.expire(one)
        assert self.taken(queue_of(two)) == "a"

    def test_a_stopped_run_stays(self, queue: RunQueue) -> None:
        self.submit(queue, "a")
        found = self.take(queue)
        assert found is not None
        queue.stop(RunId("a"), "no key")
        found.claim.release()
        assert self.taken(queue) is None
        entry = queue.entry(RunId("a"))
        assert entry is not None
        assert (entry.state, entry.reason) == ("stopped", "no key")

    # -- limits ----------------------------------------------------------------------------------

    def test_a_limit_holds_across_processes(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.submit(queue_of(one), "a", "b", "c", concurrency_limit=2)
        self.submit(queue_of(one), "other", concurrency_limit=1, concurrency_key="k")
        first = self.take(queue_of(one))
        assert first is not None
        taken = [self.taken(queue_of(journal)) for journal in (two, one, two)]
        assert (first.run, taken) == ("a", ["b", "other", None])
        one.append(RunId("a"), [DONE])
        assert self.taken(queue_of(two)) == "c"

    def test_a_run_in_a_full_limit_is_resumed(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.submit(queue_of(one), "a", "b", concurrency_limit=1)
        assert self.taken(queue_of(one)) == "a"
        self.expire(one)
        assert [self.taken(queue_of(two)) for _ in range(2)] == ["a", None]

    def test_a_limit_holds_against_threads(self, both: tuple[Journal, Journal]) -> None:
        names = [f"run-{number}" for number in range(12)]
        self.submit(queue_of(both[0]), *names, concurrency_limit=3)
        with ThreadPoolExecutor(4) as threads:
            taken = threads.map(lambda n: self.taken(queue_of(both[n % 2])), range(40))
        assert len([run for run in taken if run]) == 3

    # -- people ----------------------------------------------------------------------------------

    def asking(self, journal: Journal) -> TakenRun:
        self.submit(queue_of(journal), "a")
        found = self.take(queue_of(journal))
        assert found is not None
        journal.append(RunId("a"), [HumanAsked(ASK, "?", {}, 1.0)])
        return found

    def test_a_run_that_asks_waits_for_the_answer(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.asking(one).claim.release()
        assert self.states(queue_of(two)) == {"a": "asking"}
        assert self.taken(queue_of(two)) is None
        two.send(RunId("a"), Letter("answer", ASK, 1))
        found = self.take(queue_of(one))
        assert found is not None
        assert one.letters(RunId("a")) == [Letter("answer", ASK, 1)]
        resumed = RunResumed(RunId("a"), 2, "2026-01-01T00:00:00+00:00", 3.0)
        one.append(RunId("a"), [resumed, HumanAnswered(ASK, 3.0, value=1), DONE])
        found.claim.release()
        assert self.states(queue_of(two)) == {"a": "ended"}

    def test_an_answer_while_the_run_is_left_is_not_missed(self, journal: Journal) -> None:
        found = self.asking(journal)
        journal.send(RunId("a"), Letter("answer", ASK, 1))
        found.claim.release()
        assert self.taken(queue_of(journal)) == "a"

    def test_a_run_that_failed_is_tried_again_on_request(self, journal: Journal) -> None:
        queue = queue_of(journal)
        self.submit(queue, "a", "b")
        for record in (FAILED, DONE):
            found = self.take(queue)
            assert found is not None
            journal.append(found.run, [record])
            found.claim.release()
        queue.requeue(RunId("a"))
        queue.requeue(RunId("b"))  # it has succeeded: nothing is left to do
        assert [self.taken(queue), self.taken(queue)] == ["a", None]

    def test_a_run_resumed_by_hand_ends_here_too(self, both: tuple[Journal, Journal]) -> None:
        one, two = both
        self.asking(one).claim.release()
        claim = two.claim(RunId("a"))
        two.append(RunId("a"), [RunResumed(RunId("a"), 2, "2026-01-01T00:00:00+00:00", 3.0)])
        assert self.states(queue_of(one)) == {"a": "running"}
        assert self.taken(queue_of(one)) is None
        two.append(RunId("a"), [DONE])
        claim.release()
        assert self.states(queue_of(one)) == {"a": "ended"}

    def test_a_pruned_run_leaves_the_queue(self, journal: Journal, queue: RunQueue) -> None:
        self.submit(queue, "a")
        journal.prune(runs=[RunId("a")])
        assert not queue.entries()

    def test_entries_by_state(self, queue: RunQueue) -> None:
        self.submit(queue, "a", "b", "c")
        self.take(queue)
        assert [entry.run for entry in queue.entries(("queued",))] == ["b", "c"]
        assert [entry.run for entry in queue.entries(("queued", "running"), 2)] == ["a", "b"]
        assert not queue.entries(("asking",))

    # -- schedules -------------------------------------------------------------------------------

    def test_a_schedule_is_kept_replaced_and_removed(self, queue: RunQueue) -> None:
        schedule = RunSchedule("nightly", "0 3 * * *", "UTC", "one", 5.0, header(""), TERMS)
        queue.put_schedule(schedule)
        queue.put_schedule(replace(schedule, name="other"))
        assert list(queue.schedules()) == [schedule, replace(schedule, name="other")]
        queue.put_schedule(replace(schedule, zone="Europe/Berlin"))
        assert queue.schedules()[0].zone == "Europe/Berlin"
        assert queue.wait_s(("default",), (), 2.0) == pytest.approx(3.0)
        assert queue.remove_schedule("nightly")
        assert not queue.remove_schedule("nightly")

    def test_one_process_fires_a_tick(self, both: tuple[Journal, Journal]) -> None:
        schedule = RunSchedule("nightly", "0 3 * * *", "UTC", "one", 5.0, header(""), TERMS)
        queue_of(both[0]).put_schedule(schedule)

        def fire(place: int) -> bool:
            return queue_of(both[place % 2]).fire(schedule, 10.0, RunId("nightly-5"), 5.0)

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(fire, range(8))) == [False] * 7 + [True]
        assert self.states(queue_of(both[0])) == {"nightly-5": "queued"}
        assert queue_of(both[1]).schedules()[0].next_s == 10.0
        later = replace(schedule, next_s=10.0)
        assert queue_of(both[1]).fire(later, 15.0, None, 0.0)
        assert len(queue_of(both[1]).entries()) == 1

    # -- workers ---------------------------------------------------------------------------------

    def test_workers_are_listed_renewed_and_removed(self, both: tuple[Journal, Journal]) -> None:
        one, two = (queue_of(journal) for journal in both)
        assert not one.workers()
        one.put_worker(WORKER, 3600)
        two.put_worker(replace(WORKER, id="b", host="elsewhere", queues=("slow", "fast")), 3600)
        for queue in (one, two):
            first, second = queue.workers()
            assert replace(first, beat_s=0.0) == WORKER
            assert (second.id, second.host, second.queues) == ("b", "elsewhere", ("slow", "fast"))
        one.put_worker(replace(WORKER, draining=True), 3600)
        renewed = two.workers()[0]
        assert (renewed.id, renewed.draining) == ("a", True)
        assert renewed.beat_s >= first.beat_s > 0
        two.remove_worker("a")
        two.remove_worker("a")  # harmless
        assert [worker.id for worker in one.workers()] == ["b"]

    def test_a_worker_without_a_heartbeat_is_not_listed(self, queue: RunQueue) -> None:
        queue.put_worker(WORKER, 3600)
        queue.put_worker(replace(WORKER, id="b"), 0.0)  # its lease has run out
        assert [worker.id for worker in queue.workers()] == ["a"]
        queue.put_worker(replace(WORKER, id="b"), 3600)
        assert [worker.id for worker in queue.workers()] == ["a", "b"]

    def test_workers_may_beat_at_once(self, both: tuple[Journal, Journal]) -> None:
        queues = [queue_of(journal) for journal in both]

        def beat(number: int) -> None:
            lease_s = 0.0 if number % 3 == 0 else 3600.0  # some expire: others forget them
            queues[number % 2].put_worker(replace(WORKER, id=f"w{number % 7}"), lease_s)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(beat, range(40)))
        for number in range(7):
            queues[0].put_worker(replace(WORKER, id=f"w{number}"), 3600)
        assert [worker.id for worker in queues[1].workers()] == [f"w{n}" for n in range(7)]

    def test_who_executes_a_run_is_a_process(self, queue: RunQueue) -> None:
        self.submit(queue, "a")
        assert self.taken(queue) == "a"
        (entry,) = queue.entries()
        assert entry.holder == holder_name(os.getpid(), platform.node())


WORKER = WorkerEntry("a", "here", 7, (("flow", "v1"), ("other", "v2")), ("default",), 4, 900.5)
_NUMBERS = iter(range(1_000_000))
