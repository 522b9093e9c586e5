"""Pooled connections to PostgreSQL, transactions that survive their loss, and clear errors.

Keeps no state in a session, so that a pooler may give each transaction another one.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from weft.core.errors import StoreError
from weft.core.ports.queue import holder_name
from weft.durability.journal.refusals import full

_REACH: Final = "is the server up, and is the address right?"
_BUSY: Final = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.QueryCanceled,
)
_DENIED: Final = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)
_LOST: Final = frozenset(
    (
        *("57P01", "57P02", "57P03", "57P05"),  # shut down, crashed, starting, idle for too long
        *("25P03", "25P04"),  # a transaction that took too long
        *("53200", "53300"),  # out of memory, too many connections
    )
)


def place(dsn: str, kind: str = "journal") -> str:
    """The location of what `kind` names, without the secrets of `dsn`. Raises: `StoreError`."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:
        raise StoreError("this is no address of a PostgreSQL database", hint=_REACH) from error
    host, name = parts.get("host") or "localhost", parts.get("dbname") or "its default database"
    return f"the {kind} in {name} on {host}"


@contextmanager
def faults(where: str) -> Iterator[None]:
    """Convert errors of the database `where` to `StoreError`."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(where, error) from error


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost or was refused, so that another one may work."""
    kinds = (psycopg.OperationalError, psycopg.InterfaceError)
    if isinstance(error, PoolClosed) or not isinstance(error, kinds):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in _LOST


def is_transient(error: psycopg.Error) -> bool:
    """Whether a repetition may succeed a moment later."""
    return is_lost(error) or isinstance(error, _BUSY)


def store_error(where: str, error: psycopg.Error) -> StoreError:
    """The `StoreError` for an error of the database `where`."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, _BUSY):
        return StoreError(f"{where} is busy: {text}", hint="nothing is lost", retryable=True)
    if isinstance(error, errors.DiskFull):
        return full(where)
    if isinstance(error, _DENIED):
        return StoreError(f"{where} cannot be written: {text}", hint="which rights has this user?")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        message = f"{where} cannot be reached: {text}"
        return StoreError(message, hint=_REACH, retryable=is_lost(error))
    return StoreError(f"{where}: {text}")


T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Rows = list[tuple[Any, ...]]

_CONNECTIONS: Final = 4
_CONNECT_S: Final = 10
_DIAGNOSE_S: Final = 2
_CHECKOUT_S: Final = 2.0
_LEAST_S: Final = 0.5
_FIRST_DELAY_S: Final = 0.02
_LONGEST_DELAY_S: Final = 1.0
_DETECT: Final = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""How libpq detects a server that vanished. Settings in the address take precedence."""
_BEGIN: Final[LiteralString] = (
    "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '30s'"
)
"""The limits release the locks of a client that vanished."""

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # errors reach the caller


class PostgresPool:
    """Runs statements and transactions on the database that `dsn` names, of what `kind` names.

    After a lost connection or a conflict they are repeated on another connection, for `retry_s`
    seconds at most; then a retryable `StoreError` is raised. Raises: `StoreError` when the database
    cannot be reached now.
    """

    def __init__(self, dsn: str, *, retry_s: float, kind: str = "journal") -> None:
        self.where = place(dsn, kind)
        self.client = holder_name(os.getpid(), platform.node())
        self._dsn = dsn
        self._retry_s = retry_s
        with self.direct():
            pass
        self._pool = ConnectionPool[Connection](
            dsn,
            kwargs=self._parameters(),
            min_size=0,
            max_size=_CONNECTIONS,
            timeout=_CHECKOUT_S,
            reconnect_timeout=_CHECKOUT_S,
            num_workers=1,
            open=True,
        )

    def ask(self, query: LiteralString, parameters: Sequence[object] = ()) -> Rows:
        """The rows of one statement, which must be repeatable. Raises: `StoreError`."""

        def fetch(db: Connection) -> Rows:
            return rows_of(db, query, parameters)

        return self._repeated(fetch)

    def transact(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns; its statements form one transaction.

        It is called again when the connection is lost, even while it commits: it must not repeat
        what an attempt that committed unseen has done. Raises: `StoreError`.
        """

        def attempt(db: Connection) -> T:
            db.execute(_BEGIN)
            return work(db)  # the pool commits

        return self._repeated(attempt)

    @contextmanager
    def direct(self, timeout_s: int = _CONNECT_S) -> Iterator[Connection]:
        """A connection outside the pool, whose failure is raised at once. Raises: `StoreError`."""
        with faults(self.where):
            parameters = {**self._parameters(), "connect_timeout": timeout_s}
            db: Connection = psycopg.connect(self._dsn, **parameters)
            try:
                yield db
            finally:
                db.close()

    def close(self) -> None:
        """Close the connections. Harmless when repeated."""
        self._pool.close()

    def _repeated(self, attempt: Callable[[Connection], T]) -> T:
        until = time.monotonic() + self._retry_s
        delay_s = _FIRST_DELAY_S
        while True:
            left_s = until - time.monotonic()
            try:
                with self._pool.connection(max(_LEAST_S, min(left_s, _CHECKOUT_S))) as db:
                    return attempt(db)
            except psycopg.Error as error:
                if not is_transient(error) or time.monotonic() + delay_s > until:
                    raise self._failure(error) from error
            time.sleep(delay_s)
            delay_s = min(2 * delay_s, _LONGEST_DELAY_S)

    def _failure(self, error: psycopg.Error) -> StoreError:
        if isinstance(error, PoolTimeout):  # the pool does not report why it could not connect
            try:
                with self.direct(_DIAGNOSE_S):
                    pass
            except StoreError as reason:
                return reason
        return store_error(self.where, error)

    def _parameters(self) -> dict[str, Any]:
        configured = conninfo_to_dict(self._dsn)
        detect = {name: value for name, value in _DETECT.items() if name not in configured}
        return {
            **detect,
            "autocommit": True,
            "prepare_threshold": None,  # prepared statements are session state
            "connect_timeout": _CONNECT_S,
            "application_name": self.client,
        }


def rows_of(
    db: Connection, query: LiteralString, parameters: Sequence[object] | Mapping[str, object] = ()
) -> Rows:
    """The rows of a statement."""
    cursor = db.execute(query, parameters)
    return [] if cursor.description is None else cursor.fetchall()
