"""The SQLite file of a memory: texts with tags, their words, and their vectors.

Words are indexed by FTS5, which is part of SQLite and so of Python: its `bm25()` ranks inside the
transaction that reads the texts. An index of our own would have to be kept in step with them, and
a package would be one more dependency. Vectors are compared one by one: exact, and fast enough for
the tens of thousands of texts that a memory holds.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from weft.agents.memory.vectors import dimension, nearest
from weft.core.errors import StoreError
from weft.durability.database_file import (
    DatabaseFormat,
    damaged_file,
    database_error,
    open_database,
)

T = TypeVar("T")
_FORMAT = DatabaseFormat(
    "memory",
    mark=0x7765666D,  # "wefm" in ASCII
    version=1,
    statements=(
        # Ids are never reused: a run may still hold the id of a text that was forgotten.
        "CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, tags TEXT NOT NULL)",
        # Outlives its text: a repeated call must not bring back what was forgotten.
        "CREATE TABLE keys (key TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
        "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')",
    ),
    synchronous="FULL",  # the journal may have recorded that the text was added
)
_WORD: Final = re.compile(r"[^\W_]+")
_BY_WORDS: Final = """SELECT items.id, words.text, items.tags, -bm25(words) AS score
FROM words JOIN items ON items.id = words.rowid WHERE words MATCH ?{tagged}
ORDER BY score DESC, items.id LIMIT ?"""
_ONE: Final = """SELECT items.id, words.text, items.tags
FROM words JOIN items ON items.id = words.rowid WHERE items.id = ?"""
_VECTORS: Final = """SELECT items.id, vector FROM items JOIN vectors ON vectors.id = items.id
WHERE 1{tagged} ORDER BY items.id"""
_WITHOUT_VECTOR: Final = """SELECT items.id, words.text FROM words
JOIN items ON items.id = words.rowid LEFT JOIN vectors ON vectors.id = items.id
WHERE vectors.id IS NULL ORDER BY items.id LIMIT ?"""
_TAGGED: Final = " AND EXISTS (SELECT 1 FROM json_each(items.tags) WHERE value = ?)"


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A text that a search found. `score`: the higher, the better; BM25 or the cosine."""

    id: int
    text: str
    tags: list[str]
    score: float


class MemoryFile:
    """The file at `path`, which is created on first use (mode 0600). Usable from any thread.

    Methods block, and raise `StoreError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def find(self, key: str) -> int | None:
        """The id that was added under `key`, even if it was forgotten since."""
        return self._with(lambda db: _id_of(db, key))

    def add(
        self, key: str, text: str, tags: Sequence[str], vector: tuple[str, bytes] | None
    ) -> int:
        """Add a text unless its `key` is known; `vector`, with its model's name. Returns its id."""

        def write(db: sqlite3.Connection) -> int:
            found = _id_of(db, key)
            if found is not None:
                return found
            made = db.execute("INSERT INTO items (tags) VALUES (?)", (json.dumps(list(tags)),))
            row = int(made.lastrowid or 0)
            db.execute("INSERT INTO keys VALUES (?, ?)", (key, row))
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, text))
            if vector is not None:
                self._put(db, *vector, [(row, vector[1])])
            return row

        return self._with(write, writes=True)

    def forget(self, row: int) -> bool:
        """Delete a text with its words and vector. Returns whether there was one."""

        def write(db: sqlite3.Connection) -> bool:
            db.execute("DELETE FROM words WHERE rowid = ?", (row,))
            db.execute("DELETE FROM vectors WHERE id = ?", (row,))
            return db.execute("DELETE FROM items WHERE id = ?", (row,)).rowcount > 0

        return self._with(write, writes=True)

    def count(self) -> int:
        """The number of texts."""
        return self._with(lambda db: int(db.execute("SELECT count(*) FROM items").fetchone()[0]))

    def by_words(self, query: str, k: int, tags: Sequence[str]) -> list[MemoryHit]:
        """The `k` best texts with any word of `query`, by BM25; ties by id."""
        match = match_of(query)
        if not match:
            return []
        statement = _BY_WORDS.format(tagged=_TAGGED * len(tags))
        rows = self._with(lambda db: db.execute(statement, (match, *tags, k)).fetchall())
        return [
            MemoryHit(row, text, self._tags(stored), score) for row, text, stored, score in rows
        ]

    def by_vector(self, model: str, query: bytes, k: int, tags: Sequence[str]) -> list[MemoryHit]:
        """The `k` texts whose vectors are nearest to `query`, by cosine; ties by id."""

        def read(db: sqlite3.Connection) -> list[MemoryHit]:
            self._check_model(db, model, dimension(query))
            statement = _VECTORS.format(tagged=_TAGGED * len(tags))
            found = nearest(query, self._vectors(db, statement, tags, len(query)), k)
            rows = [(*db.execute(_ONE, (row,)).fetchone(), score) for row, score in found]
            return [
                MemoryHit(row, text, self._tags(stored), score) for row, text, stored, score in rows
            ]

        return self._with(read)

    def without_vector(self, most: int) -> list[tuple[int, str]]:
        """The ids and texts that have no vector yet: they were added without a model."""
        return self._with(lambda db: db.execute(_WITHOUT_VECTOR, (most,)).fetchall())

    def put_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Store the vectors of texts that are still there."""
        self._with(lambda db: self._put(db, model, vectors[0][1], vectors), writes=True)

    def check_model(self, model: str) -> None:
        """Refuse vectors of another model than those in the file. Raises: `StoreError`."""
        self._with(lambda db: self._check_model(db, model, None))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _put(
        self,
        db: sqlite3.Connection,
        model: str,
        first: bytes,
        vectors: Sequence[tuple[int, bytes]],
    ) -> None:
        self._check_model(db, model, dimension(first))
        settings = [("model", model), ("dimension", dimension(first))]
        db.executemany("INSERT OR IGNORE INTO settings VALUES (?, ?)", settings)
        there = "SELECT ?, ? WHERE EXISTS (SELECT 1 FROM items WHERE id = ?)"
        rows = [(row, vector, row) for row, vector in vectors]
        db.executemany(f"INSERT OR REPLACE INTO vectors {there}", rows)

    def _check_model(self, db: sqlite3.Connection, model: str, size: int | None) -> None:
        stored = dict(db.execute("SELECT name, value FROM settings").fetchall())
        hint = "search it with that model, or give the memory a file of its own"
        if stored.get("model", model) != model:
            text = f"{self.path} has embeddings of {stored['model']}, not of {model}"
            raise StoreError(text, hint=hint)
        if size is not None and stored.get("dimension", size) != size:
            text = f"{self.path} has embeddings of {stored['dimension']} numbers, not of {size}"
            raise StoreError(text, hint=hint)

    def _vectors(
        self, db: sqlite3.Connection, statement: str, tags: Sequence[str], size: int
    ) -> Iterator[tuple[int, bytes]]:
        for row, vector in db.execute(statement, tuple(tags)):
            if not isinstance(vector, bytes) or len(vector) != size:
                raise damaged_file(self.path, _FORMAT, f"the vector of {row} has another length")
            yield row, vector

    def _tags(self, stored: str) -> list[str]:
        try:
            return [str(tag) for tag in json.loads(stored)]
        except (TypeError, ValueError) as error:
            raise damaged_file(self.path, _FORMAT, str(error)) from error

    def _with(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = open_database(self.path, _FORMAT)
                # A reader too sees one state of the file, whatever other processes write.
                with _transaction(self._connection, "IMMEDIATE" if writes else "DEFERRED"):
                    return work(self._connection)
            except (sqlite3.Error, OSError) as error:
                raise database_error(self.path, _FORMAT, error) from error


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str) -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _id_of(db: sqlite3.Connection, key: str) -> int | None:
    row = db.execute("SELECT id FROM keys WHERE key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def match_of(query: str) -> str:
    """An expression of FTS5 that matches texts with any word of `query`; empty without a word.

    Each word is quoted, so that no part of a query is syntax.
    """
    words = _WORD.findall(unicodedata.normalize("NFC", query))
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
