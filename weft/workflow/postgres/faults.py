"""What PostgreSQL complains of, as typed errors that say what to do and show no password.

Does not repair anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import PoolClosed

from weft.core.errors import StoreError
from weft.engine.journal.refusals import full

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


def place(dsn: str) -> str:
    """Where a journal is, without what is secret in its address. Raises: `StoreError`."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:
        raise StoreError("this is no address of a PostgreSQL database", hint=_REACH) from error
    host, name = parts.get("host") or "localhost", parts.get("dbname") or "its default database"
    return f"the journal in {name} on {host}"


@contextmanager
def faults(where: str) -> Iterator[None]:
    """Turn what goes wrong with the database `where` into a `StoreError`."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(where, error) from error


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or none could be had: another one may do."""
    kinds = (psycopg.OperationalError, psycopg.InterfaceError)
    if isinstance(error, PoolClosed) or not isinstance(error, kinds):
        return False
    state = error.sqlstate
    return state is None or state.startswith("08") or state in _LOST


def is_transient(error: psycopg.Error) -> bool:
    """Whether the same may succeed a moment later."""
    return is_lost(error) or isinstance(error, _BUSY)


def store_error(where: str, error: psycopg.Error) -> StoreError:
    """What went wrong with the database `where`."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, _BUSY):
        return StoreError(f"{where} is busy: {said}", hint="nothing is lost", retryable=True)
    if isinstance(error, errors.DiskFull):
        return full(where)
    if isinstance(error, _DENIED):
        return StoreError(f"{where} cannot be written: {said}", hint="which rights has this user?")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        said = f"{where} cannot be reached: {said}"
        return StoreError(said, hint=_REACH, retryable=is_lost(error))
    return StoreError(f"{where}: {said}")
