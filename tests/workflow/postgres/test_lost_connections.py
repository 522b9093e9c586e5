"""Connections that end at the worst moment: when nobody can say whether a commit was one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Literal

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from tests.postgres_proxy import PostgresProxy, postgres_proxy
from tests.postgres_server import PostgresServer
from weft.core.errors import StoreError
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter

psycopg = pytest.importorskip("psycopg_pool", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres import PostgresJournal  # noqa: E402

When = Literal["before", "after"]
ANSWER = Letter("answer", NodeId("ask"), 1)
both_ends = pytest.mark.parametrize("when", ["before", "after"])


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[PostgresProxy]:
    with postgres_proxy(server) as proxy:
        yield proxy


@pytest.fixture
def address(proxy: PostgresProxy, server: PostgresServer) -> str:
    return server.database().replace(str(server.folder), str(proxy.folder))


@pytest.fixture
def journal(address: str) -> Iterator[PostgresJournal]:
    with closing(PostgresJournal(address)) as journal:
        yield journal


@both_ends
def test_a_batch_is_there_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    journal.begin(header())
    for number in range(1, 4):
        proxy.cut(when, b"COMMIT")
        journal.append(RUN, [line(number), large(number)])
    assert proxy.cuts == 3
    assert read(journal) == [one for n in range(1, 4) for one in (line(n), large(n))]
    assert not journal.check()


@both_ends
def test_a_run_is_begun_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    proxy.cut(when, b"COMMIT")
    journal.begin(header())
    journal.append(RUN, [line(1)])
    assert proxy.cuts == 1
    assert [summary.run for summary in journal.runs()] == [RUN]
    assert read(journal) == [line(1)]


@both_ends
def test_a_run_is_claimed_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    journal.begin(header()).release()
    proxy.cut(when, b"COMMIT")
    claim = journal.claim(RUN)
    journal.append(RUN, [line(1)])
    claim.release()
    assert proxy.cuts == 1
    journal.claim(RUN)


@both_ends
def test_letters_are_taken_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    journal.begin(header())
    journal.send(RUN, ANSWER)
    proxy.cut(when, b"COMMIT")
    assert journal.letters(RUN) == [ANSWER]
    assert proxy.cuts == 1
    assert journal.letters(RUN) == []


@both_ends
def test_letters_are_sent_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    journal.begin(header())
    proxy.cut(when, b"INSERT INTO weft_letters")
    journal.send(RUN, ANSWER)
    assert proxy.cuts == 1
    assert journal.letters(RUN) == [ANSWER]


@both_ends
def test_runs_are_removed_once(journal: PostgresJournal, proxy: PostgresProxy, when: When) -> None:
    journal.begin(header()).release()
    proxy.cut(when, b"DELETE FROM weft_runs")
    assert journal.prune(keep=0).runs == (RUN,)
    assert proxy.cuts == 1
    assert journal.runs() == []


@both_ends
@pytest.mark.parametrize("message", [b"weft_leases SET seq", b"INSERT INTO weft_batches"])
def test_a_connection_may_end_within_a_batch(
    journal: PostgresJournal, proxy: PostgresProxy, when: When, message: bytes
) -> None:
    journal.begin(header())
    proxy.cut(when, message)
    journal.append(RUN, [line(1)])
    assert proxy.cuts == 1
    assert read(journal) == [line(1)]


@both_ends
@pytest.mark.parametrize(
    "call",
    [
        PostgresJournal.runs,
        PostgresJournal.check,
        PostgresJournal.version,
        lambda journal: journal.header(RUN),
        lambda journal: journal.summary(RUN),
        read,
    ],
)
def test_reading_goes_on_elsewhere(
    journal: PostgresJournal,
    proxy: PostgresProxy,
    when: When,
    call: Callable[[PostgresJournal], object],
) -> None:
    journal.begin(header())
    journal.append(RUN, [line(1)])
    told = call(journal)
    proxy.cut(when, b"SELECT")
    assert call(journal) == told
    assert proxy.cuts == 1


@both_ends
@pytest.mark.parametrize("again", [[1, 2], [1, 2, 3], [3]])
def test_who_gave_up_may_repeat_what_may_have_been_written(
    address: str, proxy: PostgresProxy, when: When, again: list[int]
) -> None:
    with closing(PostgresJournal(address, retry_s=0)) as journal:
        journal.begin(header())
        journal.append(RUN, [line(0)])
        proxy.cut(when, b"COMMIT")
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            journal.append(RUN, [line(1), line(2)])
        assert caught.value.retryable
        journal.append(RUN, [line(number) for number in again])
        journal.append(RUN, [line(9)])
        first = [0, 1, 2] if when == "after" or 1 in again else [0]
        rest = [3] if 3 in again else []
        assert read(journal) == [line(number) for number in [*first, *rest, 9]]
        assert not journal.check()


def test_letters_that_a_lost_answer_held_come_with_the_next_look(
    address: str, proxy: PostgresProxy
) -> None:
    with closing(PostgresJournal(address, retry_s=0)) as journal:
        journal.begin(header())
        journal.send(RUN, ANSWER)
        proxy.cut("after", b"COMMIT")
        with pytest.raises(StoreError, match="cannot be reached"):
            journal.letters(RUN)
        journal.send(RUN, Letter("cancel", None))
        assert journal.letters(RUN) == [ANSWER, Letter("cancel", None)]
        assert journal.letters(RUN) == []


def test_a_server_that_stays_away_is_told_as_retryable(server: PostgresServer) -> None:
    with closing(PostgresJournal(server.database(), retry_s=0.1)) as journal:
        journal.begin(header())
        server.stop()
        try:
            with pytest.raises(StoreError, match="cannot be reached: connection") as caught:
                journal.append(RUN, [line(1)])
        finally:
            server.start()
        assert caught.value.retryable
        journal.append(RUN, [line(1)])
        assert read(journal) == [line(1)]
