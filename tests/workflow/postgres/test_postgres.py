"""What a journal in PostgreSQL does beyond the conformance suite, on a real server."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from weft.core.codec import encode, encode_all
from weft.core.errors import RunBusy, StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Letter
from weft.durability.journal.rows import sealed

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres import PostgresJournal  # noqa: E402
from weft.workflow.postgres.tables import MIGRATIONS, prepare  # noqa: E402

HOLDER = """
import sys
from tests.durability.journal.lines import RUN, header, line
from weft.workflow.postgres import PostgresJournal
journal = PostgresJournal(sys.argv[1])
claim = journal.begin(header())
number = 0
while True:
    number += 1
    journal.append(RUN, [line(number)])
    print(number, flush=True)
"""


def end_leases(dsn: str) -> None:
    """As if their time were over."""
    with psycopg.connect(dsn) as db:
        db.execute("UPDATE weft_leases SET expires = clock_timestamp()")


@contextmanager
def holder_of(dsn: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            yield holder
        finally:
            holder.kill()


def test_a_killed_process_loses_its_claim_and_nothing_it_wrote(dsn: str) -> None:
    with holder_of(dsn) as holder, closing(PostgresJournal(dsn)) as journal:
        assert holder.stdout is not None
        for _ in range(20):
            written = int(holder.stdout.readline())
        assert journal.summary(RUN).standing == "running"
        with pytest.raises(RunBusy, match=f"process {holder.pid} on "):
            journal.claim(RUN)
        with pytest.raises(RunBusy):
            journal.prune(runs=[RUN])
        holder.send_signal(signal.SIGKILL)
        written += len(holder.stdout.read().split())
        holder.wait()
        with pytest.raises(RunBusy, match=r"if that process has died, the run is free in \d+ s"):
            journal.claim(RUN)
        end_leases(dsn)
        assert journal.summary(RUN).standing == "interrupted"
        journal.claim(RUN)
        records = read(journal)
        assert len(records) in (written, written + 1)  # killed before it could say so
        assert records == [line(number) for number in range(1, len(records) + 1)]
        journal.append(RUN, [line(0)])
        assert not journal.check()


def test_another_process_is_heard(dsn: str) -> None:
    with closing(PostgresJournal(dsn)) as one, closing(PostgresJournal(dsn)) as two:
        one.begin(header())
        before = two.version()
        assert two.version() == before
        one.append(RUN, [line(1)])
        assert two.version() != before
        assert read(two) == [line(1)]


def test_journals_in_two_schemas_do_not_meet(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("CREATE SCHEMA team")
    with (
        closing(PostgresJournal(dsn)) as one,
        closing(PostgresJournal(f"{dsn}&options=-csearch_path%3Dteam")) as two,
    ):
        one.begin(header())
        two.begin(header())
        two.append(RUN, [line(2)])
        assert read(one) == []
        assert read(two) == [line(2)]


def test_processes_that_keep_the_same_values_do_not_block_each_other(dsn: str) -> None:
    failures: list[Exception] = []

    def write(run: RunId) -> None:
        try:
            with closing(PostgresJournal(dsn)) as journal:
                journal.begin(header(run))
                for number in range(30):
                    journal.append(run, [large(number), large(number + 1), large(29 - number)])
        except Exception as error:
            failures.append(error)

    runs = [RunId(f"run-{number}") for number in range(4)]
    threads = [threading.Thread(target=write, args=(run,)) for run in runs]
    with closing(PostgresJournal(dsn)) as journal:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            journal.prune(runs=[])
        for thread in threads:
            thread.join()
        assert not failures
        assert not journal.check()
        assert all(len(read(journal, run)) == 90 for run in runs)


def test_tables_of_a_newer_weft_are_refused(dsn: str) -> None:
    PostgresJournal(dsn).close()
    with psycopg.connect(dsn, autocommit=True) as db:
        newer = [*MIGRATIONS, ["ALTER TABLE weft_runs ADD COLUMN label text"]]
        prepare(db, "the journal", newer)
        prepare(db, "the journal", newer)
        assert db.execute("SELECT label FROM weft_runs").fetchall() == []
    with pytest.raises(StoreError, match=rf"has format {len(newer)}.*newer"):
        PostgresJournal(dsn)


OLD = """
INSERT INTO weft_runs (id, flow, wall, header) VALUES ('run-1', 'flow', %(wall)s, %(header)s);
INSERT INTO weft_batches VALUES (1, 2, 1, %(body)s);
INSERT INTO weft_letters (run, node, taken, body) VALUES (1, 'n', true, %(letter)s)
"""


def test_runs_of_format_1_go_on(dsn: str) -> None:
    letter = Letter("answer", NodeId("n"), 1)
    rows = {
        "wall": header().wall,
        "header": sealed(encode(header())),
        "body": sealed(encode_all([line(1), line(2)])),
        "letter": sealed(encode(letter)),
    }
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as db:
        prepare(db, "the journal", MIGRATIONS[:1])
        db.execute(OLD, rows)
        db.execute("SELECT pg_advisory_lock(('weft_runs'::regclass::oid::bigint << 32) | 1)")
        with pytest.raises(StoreError, match="an older weft is writing to it") as caught:
            PostgresJournal(dsn, retry_s=0)
        assert caught.value.retryable
    with closing(PostgresJournal(dsn)) as journal:
        assert journal.summary(RUN).standing == "interrupted"
        journal.claim(RUN)
        assert journal.letters(RUN) == [letter]
        journal.append(RUN, [line(3)])
        assert read(journal) == [line(1), line(2), line(3)]
        assert not journal.check()


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:hunter2@127.0.0.1:1/none", "host=/nowhere password=hunter2", "hunter2"],
)
def test_what_cannot_be_reached_shows_no_password(address: str) -> None:
    with pytest.raises(StoreError) as caught:
        PostgresJournal(address)
    assert "address" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_journal_that_may_not_be_written_is_told(dsn: str) -> None:
    with closing(PostgresJournal(dsn)) as journal:
        journal.begin(header())
        with psycopg.connect(dsn, autocommit=True) as db:
            query = psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
            name = psycopg.sql.Identifier(db.info.dbname)
            db.execute(query.format(name, "on"))
            terminate(db)
            with pytest.raises(StoreError, match="cannot be written"):
                journal.append(RUN, [line(1)])
            db.execute("SET default_transaction_read_only = off")
            db.execute(query.format(name, "off"))
            terminate(db)
        journal.append(RUN, [line(1)])
        assert read(journal) == [line(1)]
        journal.close()
        with pytest.raises(StoreError, match="closed"):
            journal.runs()


def terminate(db: psycopg.Connection[Any]) -> None:
    """End all other sessions of the database."""
    db.execute(
        """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()"""
    )
