"""A real PgBouncer in transaction mode for tests: each transaction gets another session."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.postgres_server import PostgresServer, program, unprivileged

_WAIT_S = 60.0
_SETTINGS = """
[databases]
* = host={server} user=weft pool_size=3
[pgbouncer]
pool_mode = transaction
auth_type = any
unix_socket_dir = {folder}
listen_addr =
listen_port = 6432
server_lifetime = 0
logfile = {folder}/log
"""


def pooler() -> str | None:
    """Where the program is, if it is installed."""
    return program("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def pgbouncer(server: PostgresServer, program: str) -> Iterator[str]:
    """The parameters of an address that lead through the pooler."""
    folder = server.folder / "pooler"
    folder.mkdir()
    who = unprivileged(folder)
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(server=server.folder, folder=folder))
    process = subprocess.Popen([program, "-q", settings], cwd=folder, **who)
    try:
        until = time.monotonic() + _WAIT_S
        while not (folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        yield f"host={folder}&port=6432&user=weft"
    finally:
        process.terminate()
        process.wait()
