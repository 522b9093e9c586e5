"""What PostgreSQL complains of, as typed errors that say what to do and show no password.

Does not repair anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo, errors

from weft.core.errors import StoreError
from weft.engine.journal.refusals import full

_REACH = "is the server up, and is the address right?"
_RETRYABLE = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.QueryCanceled,
)
_DENIED = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)


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
        raise _store_error(where, error) from error


def _store_error(where: str, error: psycopg.Error) -> StoreError:
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, _RETRYABLE):
        return StoreError(f"{where} is busy: {said}", hint="nothing is lost", retryable=True)
    if isinstance(error, errors.DiskFull):
        return full(where)
    if isinstance(error, _DENIED):
        return StoreError(f"{where} cannot be written: {said}", hint="which rights has this user?")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return StoreError(f"{where} cannot be reached: {said}", hint=_REACH)
    return StoreError(f"{where}: {said}")
