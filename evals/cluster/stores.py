"""The servers beside a cluster under chaos: PostgreSQL for the journal, Redis for Ray's own state.

Each is started here, listens to this machine alone, and is gone at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from weft.cluster.nodes import free_port

REDIS: Final = "RAY_REDIS_ADDRESS"
"""The variable by which Ray's control store finds the Redis that it keeps its state in."""
_HOST: Final = "127.0.0.1"
_WAIT_S: Final = 30.0


@contextmanager
def database() -> Iterator[str | None]:
    """The address of an empty database; None where no PostgreSQL is installed, which is said."""
    import pytest

    from tests.postgres_server import postgres_server

    with ExitStack() as opened:
        try:
            server = opened.enter_context(postgres_server(durable=True))
        except pytest.skip.Exception as reason:
            print(f"no kills of connections to a journal's server: {reason}", file=sys.stderr)
            yield None
            return
        yield server.database()


def terminate_session(address: str, pick: float) -> bool:
    """End one of the sessions of weft at a database; False when there is none just now.

    `pick`: which one of them, from 0 to 1.
    """
    import psycopg

    query = """SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND application_name LIKE 'process %' ORDER BY pid"""
    with psycopg.connect(address, autocommit=True) as db:
        pids = [pid for (pid,) in db.execute(query)]
        if not pids:
            return False
        chosen = pids[int(pick * len(pids))]
        ((ended,),) = db.execute("SELECT pg_terminate_backend(%s)", [chosen]).fetchall()
    return bool(ended)


def has_redis() -> bool:
    """Whether a Redis server is installed here; where not, it is said."""
    found = shutil.which("redis-server") is not None
    if not found:
        text = "no kills of a control store with Redis: no redis-server is installed here"
        print(text, file=sys.stderr)
    return found


@contextmanager
def redis_server(folder: Path) -> Iterator[None]:
    """A Redis server, for the clusters that are started meanwhile with `REDIS` passed."""
    port = free_port(_HOST)
    options = ["--bind", _HOST, "--port", str(port), "--dir", str(folder), "--save", ""]
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen(["redis-server", *options], stdout=log, stderr=log)
    try:
        _await(server, folder / "redis.log")
        os.environ[REDIS] = f"{_HOST}:{port}"
        yield
    finally:
        os.environ.pop(REDIS, None)
        server.kill()
        server.wait()


def _await(server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _WAIT_S
    while "Ready to accept connections" not in log.read_text("utf-8", "replace"):
        if server.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"Redis did not start: {log.read_text('utf-8', 'replace')[-600:]}")
        time.sleep(0.05)
