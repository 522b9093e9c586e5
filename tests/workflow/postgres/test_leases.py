"""Who may write to a run, when connections, processes and clocks do as they like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.durability.journal.lines import RUN, header, line, read
from weft.core.errors import RunBusy, StoreError, UnknownReference
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Letter
from weft.core.ports.queue import QueueTerms

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres import PostgresJournal  # noqa: E402


@pytest.fixture
def one(dsn: str) -> Iterator[PostgresJournal]:
    with closing(PostgresJournal(dsn, lease_s=3600)) as journal:
        yield journal


@pytest.fixture
def two(dsn: str) -> Iterator[PostgresJournal]:
    with closing(PostgresJournal(dsn, lease_s=3600)) as journal:
        yield journal


def expire(dsn: str) -> None:
    with psycopg.connect(dsn) as db:
        db.execute("UPDATE weft_leases SET expires = clock_timestamp()")


def test_who_was_silent_for_too_long_writes_no_more(
    dsn: str, one: PostgresJournal, two: PostgresJournal
) -> None:
    claim = one.begin(header())
    one.append(RUN, [line(1)])
    expire(dsn)
    two.claim(RUN)
    two.send(RUN, Letter("answer", NodeId("n"), 1))
    with pytest.raises(StoreError, match="has claimed the run 'run-1' meanwhile") as caught:
        one.append(RUN, [line(2)])
    assert not caught.value.retryable
    with pytest.raises(StoreError, match="meanwhile"):
        one.letters(RUN)
    claim.release()  # of what it has no more: the other one keeps it
    with pytest.raises(RunBusy):
        one.claim(RUN)
    two.append(RUN, [line(3)])
    assert len(two.letters(RUN)) == 1
    assert read(one) == [line(1), line(3)]


def test_a_lease_that_ended_unseen_is_renewed_by_a_write(dsn: str, one: PostgresJournal) -> None:
    one.begin(header())
    expire(dsn)
    assert one.summary(RUN).standing == "interrupted"
    one.append(RUN, [line(1)])
    assert one.summary(RUN).standing == "running"


def test_a_process_does_not_take_its_own_run_twice(dsn: str, one: PostgresJournal) -> None:
    one.begin(header())
    expire(dsn)
    with pytest.raises(RunBusy):
        one.claim(RUN)


def test_a_run_that_was_removed_meanwhile_is_told(
    dsn: str, one: PostgresJournal, two: PostgresJournal
) -> None:
    one.begin(header())
    expire(dsn)
    assert two.prune(keep=0).runs == (RUN,)
    with pytest.raises(StoreError, match="was removed"):
        one.append(RUN, [line(1)])
    with pytest.raises(UnknownReference):
        two.claim(RUN)


def test_a_silent_process_renews_its_leases(dsn: str, two: PostgresJournal) -> None:
    with closing(PostgresJournal(dsn, lease_s=0.2)) as one, psycopg.connect(dsn) as db:
        one.begin(header())
        query = "SELECT expires FROM weft_leases"
        ((first,),) = db.execute(query).fetchall()
        seen = {first}
        while len(seen) < 4:  # ends when the heartbeat does its work
            db.commit()
            seen |= {expires for (expires,) in db.execute(query)}
        assert two.summary(RUN).standing == "running"


def test_closing_ends_the_leases(dsn: str, two: PostgresJournal) -> None:
    one = PostgresJournal(dsn, lease_s=3600)
    one.begin(header())
    one.close()
    two.claim(RUN)


def test_a_run_that_was_stopped_has_no_lease_to_wait_for(dsn: str, one: PostgresJournal) -> None:
    limit = QueueTerms("v1", concurrency_key="k", concurrency_limit=1, max_attempts=1)
    asked = (("default",), ("v1",))
    one.queue.submit(header(RunId("a")), limit)
    one.queue.submit(header(RunId("b")), limit)
    first = one.queue.take(*asked)
    assert first is not None
    assert first.run == "a"
    expire(dsn)
    second = one.queue.take(*asked)  # the worker of `a` has died, so that is stopped
    assert second is not None
    assert second.run == "b"
    one.queue.requeue(RunId("a"))
    assert one.queue.take(*asked) is None  # its limit is full
    wait_s = one.queue.wait_s(*asked)
    assert wait_s is not None
    assert wait_s > 1.0  # until `b` may be taken: a worker would look again and again at 0


def test_a_database_of_an_older_copy_is_told(dsn: str, one: PostgresJournal) -> None:
    one.begin(header())
    for number in (1, 2):
        one.append(RUN, [line(number)])
    with psycopg.connect(dsn) as db:
        db.execute("DELETE FROM weft_batches WHERE seq = 2")
        db.execute("UPDATE weft_leases SET seq = 1")
    with pytest.raises(StoreError, match=r"ends with record 1, not 2.*older copy"):
        one.append(RUN, [line(3)])
    assert read(one) == [line(1)]
