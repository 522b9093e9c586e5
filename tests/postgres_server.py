"""A real PostgreSQL server for tests: its own folder and socket, no port, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_WAIT_S = 120.0
_QUICK = ("fsync=off", "full_page_writes=off", "listen_addresses=", "autovacuum=off")


class PostgresServer:
    """Hands out empty databases."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self.process = process
        self._numbers = count(1)

    def dsn(self, database: str) -> str:
        return f"postgresql:///{database}?host={self._folder}&user=weft"

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.dsn(name)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server. Skips the test that asks where there is none, and says why."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")
    programs = [_program("initdb"), _program("postgres")]
    if None in programs:
        pytest.skip("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
    who: dict[str, Any] = {}
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    try:
        with _running(folder, programs, who) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path, programs: list[Any], who: dict[str, Any]) -> Iterator[PostgresServer]:
    initdb, postgres = programs
    data = folder / "data"
    made = [initdb, "-D", data, "-U", "weft", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **who)
    options = [part for option in _QUICK for part in ("-c", option)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [postgres, "-D", data, "-k", folder, *options],
            stderr=log,
            stdout=log,
            cwd=folder,
            **who,
        )
        try:
            server = PostgresServer(folder, process)
            _await(server, folder / "log")
            yield server
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:  # a client that was never closed
                process.kill()
                process.wait()


def _await(server: PostgresServer, log: Path) -> None:
    import psycopg

    until = time.monotonic() + _WAIT_S
    while True:
        try:
            psycopg.connect(server.dsn("postgres")).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > until or server.process.poll() is not None:
                pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found is None:
        places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(places[-1]) if places else None
    return found
