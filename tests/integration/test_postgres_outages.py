"""Processes whose journal is on a server that ends their sessions, and itself, at random."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.outages.worker import ITEMS
from tests.postgres_server import PostgresServer, postgres_server

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")

from weft.workflow.postgres import PostgresJournal  # noqa: E402

SEED = 16
SESSIONS = """SELECT pid FROM pg_stat_activity WHERE datname = current_database()
AND application_name LIKE 'process %' ORDER BY pid"""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class Outages:
    """Ends a random session of `dsn`, and now and then the server, as the ledger grows."""

    def __init__(self, server: PostgresServer, dsn: str, draw: random.Random) -> None:
        self._server = server
        self._dsn = dsn
        self._draw = draw
        self.terminated = 0
        self.restarted = 0

    def terminate(self) -> None:
        """End one session, if there is any just now."""
        with psycopg.connect(self._dsn, autocommit=True) as db:
            pids = [pid for (pid,) in db.execute(SESSIONS)]
            if pids:
                query = "SELECT pg_terminate_backend(%s)"
                ((done,),) = db.execute(query, [self._draw.choice(pids)]).fetchall()
                self.terminated += done

    def restart(self) -> None:
        """End all sessions, and the server for a while."""
        self._server.restart()
        self.restarted += 1


def survive(
    server: PostgresServer, folder: Path, *, processes: int, terminations: int, restarts: int
) -> None:
    dsn, stop = server.database(), folder / "stop"
    draw = random.Random(SEED)
    outages = Outages(server, dsn, draw)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "tests.integration.outages.worker", dsn]
    workers = [
        subprocess.Popen([*command, f"worker{number}", str(stop)], stdout=writing)
        for number in range(processes)
    ]
    os.close(writing)
    lines: list[str] = []
    try:
        with os.fdopen(reading) as ledger:
            begun: set[str] = set()  # a process does not wait for a server when it opens a journal
            due = 1
            for line in ledger:  # ends with the last worker
                lines.append(line.strip())
                begun.add(line.partition("-")[0])
                if len(begun) < processes or len(lines) < due or stop.exists():
                    continue
                due = len(lines) + draw.randint(1, 6)
                if outages.restarted * terminations < outages.terminated * restarts:
                    outages.restart()
                elif outages.terminated < terminations:
                    outages.terminate()
                else:
                    stop.touch()
        assert [worker.wait() for worker in workers] == [0] * processes
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert (outages.terminated, outages.restarted) == (terminations, restarts)
    with closing(PostgresJournal(dsn)) as journal:
        runs = journal.runs()
        assert {summary.standing for summary in runs} == {"succeeded"}
        made = [f"{summary.run} {item}" for summary in runs for item in range(ITEMS)]
        assert Counter(lines) == Counter(made)
        assert not journal.check()
    print(f"{processes} processes, {len(runs)} runs, {len(lines)} effects, each once")


def test_runs_outlive_lost_connections_and_a_restart(
    server: PostgresServer, tmp_path: Path
) -> None:
    survive(server, tmp_path, processes=2, terminations=10, restarts=1)


@pytest.mark.slow
def test_runs_outlive_a_hundred_lost_connections_and_five_restarts(
    server: PostgresServer, tmp_path: Path
) -> None:
    survive(server, tmp_path, processes=4, terminations=100, restarts=5)
