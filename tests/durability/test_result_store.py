from __future__ import annotations

import asyncio
import math
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing, closing
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from weft.core.errors import StoreError
from weft.core.ports import StoreEntry
from weft.durability.result_store import SqliteStore
from weft.testing import FakeClock


class Pair(NamedTuple):
    left: int
    right: int


class Colour(Enum):
    RED = 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "results.sqlite"


async def _put(path: Path, key: str, value: Any, **rest: Any) -> None:
    async with aclosing(SqliteStore(path)) as store:
        await store.put(key, value, **rest)


async def _get(path: Path, key: str) -> StoreEntry | None:
    async with aclosing(SqliteStore(path)) as store:
        return await store.get(key)


def test_values_outlive_the_store(path: Path) -> None:
    asyncio.run(_put(path, "k", {"a": [1, 2.5, None]}))
    assert asyncio.run(_get(path, "k")) == StoreEntry({"a": [1, 2.5, None]})


def test_expiry_outlives_the_store(path: Path) -> None:
    clock = FakeClock()

    async def write() -> None:
        async with aclosing(SqliteStore(path, clock)) as store:
            await store.put("k", 1, ttl_s=60)

    async def read() -> StoreEntry | None:
        async with aclosing(SqliteStore(path, clock)) as store:
            return await store.get("k")

    clock.run(write())
    clock.advance(59)
    assert clock.run(read()) == StoreEntry(1)
    clock.advance(1)
    assert clock.run(read()) is None


def test_expired_rows_leave_the_file(path: Path) -> None:
    clock = FakeClock()

    async def main() -> None:
        async with aclosing(SqliteStore(path, clock)) as store:
            await store.put("old", 1, ttl_s=1)
            clock.advance(2)
            await store.put("new", 2)

    clock.run(main())
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT key FROM results").fetchall() == [("new",)]


_cycle: list[Any] = []
_cycle.append(_cycle)
_deep: list[Any] = []
for _ in range(100_000):
    _deep = [_deep]


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        [(1, 2)],
        {1: "a"},
        {None: 1},
        {"a": {1, 2}},
        math.nan,
        [math.inf],
        b"bytes",
        Pair(1, 2),
        Colour.RED,
        object(),
        _cycle,
        _deep,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_would_change_is_refused(path: Path, value: object) -> None:
    with pytest.raises(TypeError, match="JSON only"):
        asyncio.run(_put(path, "k", value))


def test_only_the_owner_may_read_the_files(path: Path) -> None:
    async def main() -> None:
        async with aclosing(SqliteStore(path)) as store:
            await store.put("k", "secret")
            files = list(path.parent.iterdir())
            assert len(files) == 3
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    asyncio.run(main())


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database, but it is long enough to look" * 40)


def _truncated(path: Path) -> None:
    asyncio.run(_put(path, "k", "x" * 100_000))
    path.write_bytes(path.read_bytes()[:5000])


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")


def _from_the_future(path: Path) -> None:
    asyncio.run(_put(path, "k", 1))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def _broken_value(path: Path) -> None:
    asyncio.run(_put(path, "k", 1))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE results SET value = '{'")


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_garbage, "damaged or no store"),
        (_truncated, "damaged or no store"),
        (_foreign, "another program"),
        (_from_the_future, "format 99"),
        (_broken_value, "damaged or no store"),
        (_folder, "directory"),
    ],
)
def test_a_file_that_is_no_store_is_a_typed_error_and_stays_untouched(
    path: Path, spoil: Callable[[Path], None], told: str
) -> None:
    path.parent.mkdir()
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError, match=told) as raised:
        asyncio.run(_get(path, "k"))
    assert raised.value.hint
    assert not raised.value.retryable
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_lock_that_stays_is_retryable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.database_file.BUSY_S", 0.01)
    asyncio.run(_put(path, "k", 1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked") as raised:
            asyncio.run(_put(path, "k", 2))
    assert raised.value.retryable


def test_a_closed_store_says_so(path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(path)
        await store.aclose()
        with pytest.raises(StoreError, match="closed"):
            await store.get("k")

    asyncio.run(main())
    assert not path.exists()


_WRITER = """
import asyncio, sys
from weft.durability import result_store
from weft.durability.result_store import SqliteStore

result_store._BUSY_S = 120.0  # another writer may stand still in the middle of a write

async def main(path, name):
    store = SqliteStore(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        await store.put(f"{name}-{number}", number)
        await store.put("shared", number)
    # Left open on purpose: the interpreter must end all the same.

asyncio.run(main(*sys.argv[1:]))
"""


def test_processes_share_one_file_and_end_by_themselves(path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0

    async def check() -> None:
        async with aclosing(SqliteStore(path)) as store:
            for name in "abc":
                for number in range(100):
                    assert await store.get(f"{name}-{number}") == StoreEntry(number)
            assert await store.get("shared") == StoreEntry(99)

    asyncio.run(check())


_READER = """
import asyncio, sys
from weft.durability import result_store
from weft.durability.result_store import SqliteStore

result_store._BUSY_S = 120.0  # another writer may stand still in the middle of a write

async def main(path):
    store = SqliteStore(path)
    print([await store.get(key) is not None for key in ("one", "two")])
    await store.aclose()

asyncio.run(main(sys.argv[1]))
"""


def test_no_other_process_takes_the_log_of_a_store_that_is_open(path: Path) -> None:
    """Also when this process has opened the file twice: its locks must have outlived that."""

    def found() -> str:
        command = [sys.executable, "-c", _READER, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    async def check() -> None:
        async with aclosing(SqliteStore(path)) as store:
            await store.put("one", 1)
            await _get(path, "one")
            assert found() == "[True, False]"
            await store.put("two", 2)
            assert found() == "[True, True]"

    asyncio.run(check())
