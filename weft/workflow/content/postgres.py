"""A content store in a PostgreSQL database, which may be that of a journal. Needs `postgres`."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from weft.core.errors import ContentNotFound, StoreError
from weft.core.ports.content import (
    MAX_CONTENT_BYTES,
    ContentDigest,
    check_content_size,
    content_digest,
    digest_of_content,
    verified_content,
)
from weft.workflow.postgres.connections import Connection, PostgresPool, place

_RETRY_S: Final = 20.0
_LARGEST: Final = (1 << 30) - (1 << 20)  # a field has at most 1 GB


class PostgresContentStore:
    """Implements `ContentStore` in the table `weft_content` of the database at `address`.

    The address has no password: that comes from `PGPASSWORD` or a password file (`PGPASSFILE`).
    Connections are pooled; after a lost one, a call is repeated for 20 s. Content is limited to
    1 GB. Raises: `StoreError` for another address.
    """

    def __init__(self, address: str, *, max_bytes: int = MAX_CONTENT_BYTES) -> None:
        self._where = _location(address)
        self._address = address
        self._max_bytes = min(max_bytes, _LARGEST)
        self._lock = threading.Lock()
        self._opened: PostgresPool | None = None

    async def put(self, content: bytes) -> ContentDigest:
        check_content_size(len(content), self._max_bytes, self._where)
        digest = digest_of_content(content)
        await asyncio.to_thread(self._put, digest, content)
        return digest

    async def get(self, digest: str) -> bytes:
        return await asyncio.to_thread(self._get, content_digest(digest))

    async def has(self, digest: str) -> bool:
        query = "SELECT FROM weft_content WHERE digest = %s"
        key = _key(content_digest(digest))
        return bool(await asyncio.to_thread(lambda: self._pool().ask(query, (key,))))

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    def _put(self, digest: ContentDigest, content: bytes) -> None:
        key = _key(digest)
        query = "SELECT FROM weft_content WHERE digest = %s AND sha256(body) = digest"
        if not self._pool().ask(query, (key,)):
            self._pool().transact(partial(_write, key, content))

    def _get(self, digest: ContentDigest) -> bytes:
        row = self._pool().transact(partial(_read, _key(digest), self._max_bytes))
        if row is None:
            raise ContentNotFound(f"{self._where} has no content {digest}")
        size_bytes, body = row
        check_content_size(size_bytes, self._max_bytes, self._where)
        return verified_content(digest, body, self._where)

    def _pool(self) -> PostgresPool:
        with self._lock:
            if self._opened is None:
                pool = PostgresPool(self._address, retry_s=_RETRY_S, kind="content store")
                try:
                    pool.transact(_prepare)
                except BaseException:
                    pool.close()
                    raise
                self._opened = pool
            return self._opened

    def _close(self) -> None:
        with self._lock:
            pool, self._opened = self._opened, None
        if pool is not None:
            pool.close()


def _location(address: str) -> str:
    """The store without its user. Raises: `StoreError`, which quotes nothing of the address."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error:
        parts = None
    if parts is None:
        hint = "postgresql://HOST/NAME"
        raise StoreError("this is no address of a PostgreSQL database", hint=hint)
    if "password" in parts:
        hint = "remove it there, and set PGPASSWORD or PGPASSFILE"
        raise StoreError("the address of a content store has no password", hint=hint)
    return place(address, "content store")


def _prepare(db: Connection) -> None:
    db.execute("SELECT pg_advisory_xact_lock(hashtextextended('weft_content', 0))")
    if db.execute("SELECT to_regclass('weft_content')").fetchone() == (None,):
        db.execute("CREATE TABLE weft_content (digest bytea PRIMARY KEY, body bytea NOT NULL)")
        db.execute("ALTER TABLE weft_content ALTER body SET STORAGE EXTERNAL")  # it has no pattern


def _write(key: bytes, content: bytes, db: Connection) -> None:
    db.execute("SET LOCAL synchronous_commit = on")
    query = """INSERT INTO weft_content VALUES (%s, %b) ON CONFLICT (digest) DO UPDATE
    SET body = excluded.body WHERE weft_content.body <> excluded.body"""
    db.execute(query, (key, content))


def _read(key: bytes, max_bytes: int, db: Connection) -> tuple[int, bytes] | None:
    """The size, and the content unless it is larger than `max_bytes`."""
    query = """SELECT octet_length(body), CASE WHEN octet_length(body) <= %s THEN body END
    FROM weft_content WHERE digest = %s"""
    row: tuple[int, bytes] | None = db.execute(query, (max_bytes, key), binary=True).fetchone()
    return row


def _key(digest: ContentDigest) -> bytes:
    return bytes.fromhex(digest.removeprefix("sha256:"))
