"""LISTEN/NOTIFY: an idle worker is woken, needs no polling where that works, and reconnects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.conformance.queue import TERMS, header
from tests.pgbouncer import pgbouncer, pooler
from tests.postgres_server import PostgresServer, postgres_server
from weft.core.ids import RunId
from weft.core.ports.journal import Letter

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres import PostgresJournal  # noqa: E402

PATIENCE_S = 60.0


@pytest.fixture
def own() -> Iterator[PostgresServer]:
    """A server that the test may stop."""
    with postgres_server() as server:
        yield server


class Woken:
    """Counts the calls of a listener."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls = 0

    def __call__(self) -> None:
        with self._changed:
            self._calls += 1
            self._changed.notify_all()

    def until(self, ready: Callable[[], bool]) -> None:
        """Wait until a call finds it `ready`."""
        with self._changed:
            assert self._changed.wait_for(ready, PATIENCE_S)

    def next(self, act: object = None) -> None:
        """Wait for a call after `act`."""
        with self._changed:
            before = self._calls
        if callable(act):
            act()
        with self._changed:
            assert self._changed.wait_for(lambda: self._calls > before, PATIENCE_S)


def test_every_change_wakes(dsn: str) -> None:
    woken = Woken()
    with (
        closing(PostgresJournal(dsn)) as one,
        closing(PostgresJournal(dsn)) as two,
        closing(one.queue.listen(woken)) as listener,
    ):
        woken.until(lambda: listener.poll_s is None)
        woken.next(lambda: two.queue.submit(header("a"), TERMS))
        taken = two.queue.take(("default",), ("v1",))
        assert taken is not None
        woken.next(taken.claim.release)
        taken = two.queue.take(("default",), ("v1",))
        assert taken is not None
        woken.next(lambda: two.queue.stop(RunId("a"), "no"))
        woken.next(lambda: two.queue.requeue(RunId("a")))


def test_an_answer_wakes(dsn: str) -> None:
    from weft.core.events import HumanAsked
    from weft.core.ids import NodeId

    woken = Woken()
    with closing(PostgresJournal(dsn)) as one, closing(one.queue.listen(woken)) as listener:
        woken.until(lambda: listener.poll_s is None)
        one.queue.submit(header("a"), TERMS)
        taken = one.queue.take(("default",), ("v1",))
        assert taken is not None
        one.append(RunId("a"), [HumanAsked(NodeId("n"), "?", {}, 1.0)])
        taken.claim.release()
        woken.next(lambda: one.send(RunId("a"), Letter("answer", NodeId("n"), 1)))


def test_a_listener_reconnects(own: PostgresServer) -> None:
    woken, dsn = Woken(), own.database()
    with closing(PostgresJournal(dsn)) as journal, closing(journal.queue.listen(woken)) as listener:
        woken.until(lambda: listener.poll_s is None)
        woken.next(own.restart)  # the worker looks by itself from here on
        woken.until(lambda: listener.poll_s is None)
        woken.next(lambda: journal.queue.submit(header("a"), TERMS))


def test_behind_a_pooler_it_polls(server: PostgresServer) -> None:
    found = pooler()
    if found is None:
        pytest.skip("no PgBouncer is installed here")
    woken = Woken()
    with pgbouncer(server, found) as parameters:
        dsn = f"{server.database().partition('?')[0]}?{parameters}"
        with (
            closing(PostgresJournal(dsn)) as journal,
            closing(journal.queue.listen(woken)) as listener,
        ):
            woken.next()
            assert listener.poll_s == 1.0


def test_an_older_database_gets_a_queue(dsn: str) -> None:
    from functools import partial

    from weft.core.codec import encode
    from weft.durability.journal.rows import sealed
    from weft.workflow.postgres.tables import MIGRATIONS, prepare

    old = header("old")
    with psycopg.connect(dsn, autocommit=True) as db:
        partial(prepare, where="here", migrations=MIGRATIONS[:4])(db)
        query = "INSERT INTO weft_runs (id, flow, wall, header) VALUES (%s, %s, %s, %s)"
        db.execute(query, (old.run, old.flow, old.wall, sealed(encode(old))))
        db.execute("INSERT INTO weft_leases VALUES (1, 1, 0, '', '', '-infinity')")
    with closing(PostgresJournal(dsn)) as journal:
        assert journal.header(RunId("old")) == old
        assert not journal.queue.entries()
        assert journal.queue.submit(header("new"), TERMS)
        assert not journal.queue.submit(old, TERMS)
        taken = journal.queue.take(("default",), ("v1",))
        assert taken is not None
        assert taken.run == "new"
