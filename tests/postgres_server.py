"""A real PostgreSQL server for tests: its own folder and socket, no port, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
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
_QUICK = ("listen_addresses=", "autovacuum=off")
_LOSSY = ("fsync=off", "full_page_writes=off")


class PostgresServer:
    """Hands out empty databases; can be stopped and started again."""

    def __init__(self, folder: Path, command: list[Any], who: dict[str, Any]) -> None:
        self.folder = folder
        self._command = command
        self._who = who
        self._numbers = count(1)
        self.start()

    def dsn(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&user=weft"

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self.dsn(name)

    def restart(self) -> None:
        """End every session and the server itself, at once, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)  # sessions are ended, not waited for
        try:
            self.process.wait(_WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stderr=log, stdout=log, cwd=self.folder, **self._who
            )
        _await(self, self.folder / "log")


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A running server. Skips the test that asks where there is none, and says why.

    `durable`: it waits for the disk, as one that is in use does.
    """
    pytest.importorskip("psycopg_pool", reason="psycopg is not installed (extra `postgres`)")
    programs = [program("initdb"), program("postgres")]
    if None in programs:
        pytest.skip("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
    who = unprivileged(folder)
    try:
        server = _made(folder, programs, who, () if durable else _LOSSY)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unprivileged(folder: Path) -> dict[str, Any]:
    """How to start a program that refuses to run as root, and may write to `folder`."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _made(
    folder: Path, programs: list[Any], who: dict[str, Any], also: tuple[str, ...]
) -> PostgresServer:
    initdb, postgres = programs
    data = folder / "data"
    made = [initdb, "-D", data, "-U", "weft", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **who)
    options = [part for option in (*_QUICK, *also) for part in ("-c", option)]
    return PostgresServer(folder, [postgres, "-D", data, "-k", folder, *options], who)


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


def program(name: str) -> str | None:
    """Where a program of the server is, if it is installed."""
    found = shutil.which(name)
    if found is None:
        places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(places[-1]) if places else None
    return found
