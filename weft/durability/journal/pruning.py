"""Removing runs, without SQL: which ones go, and which values the others refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from weft.core.ids import RunId
from weft.core.ports.journal import outdated
from weft.durability.journal.refusals import busy
from weft.durability.journal.rows import Fetch, as_text, named, unpacked, unsealed
from weft.durability.journal.tables import RunRow, Tables

# Inside a JSON string the quotes would be escaped: only the codec writes this.
_REFERENCE = re.compile(r'\{"~r":"([A-Za-z0-9_-]{32})"\}')
_ROW_BYTES = 48  # the rough cost of a row in addition to its body


class ReachableValues:
    """The values that some rows refer to: their `digests`, and `size_bytes` of values and rows."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self.digests: set[bytes] = set()
        self.size_bytes = 0

    def follow(self, rows: Sequence[bytes]) -> None:
        """Mark the values that sealed rows refer to. Raises: `StoreError` for damaged rows."""
        self._count(rows)
        waiting = [unsealed(row) for row in rows]
        while waiting:
            for digest in {named(name) for name in _REFERENCE.findall(waiting.pop())}:
                if digest not in self.digests:
                    self.digests.add(digest)
                    stored = self._fetch(digest)
                    if stored is not None:
                        self._count([stored])
                        waiting.append(as_text(unpacked(stored)))

    def _count(self, bodies: Sequence[bytes]) -> None:
        self.size_bytes += sum(map(len, bodies)) + _ROW_BYTES * len(bodies)


AT_ONCE = 100
"""Runs removed at once, each under its own lock."""


class ReachableRecords:
    """The values that runs refer to. Runs may grow between two calls."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._last: dict[int, int] = {}
        self.marks = ReachableValues(tables.fetch)

    def add(self, row: RunRow) -> None:
        """Mark the values of a run; when repeated, only those of its new records."""
        if row.no not in self._last:
            self._last[row.no] = 0
            self.marks.follow([self._tables.header_of(row)])
        for batch in self._tables.batches_of(row, self._last[row.no]):
            self._last[row.no] = batch.seq
            self.marks.follow([batch.body])

    def add_all(self) -> None:
        """Mark the values of every run."""
        for row in self._tables.rows():
            self.add(row)


def going(
    tables: Tables,
    now: datetime,
    *,
    keep: int | None,
    older_than_s: float | None,
    runs: Sequence[RunId] | None,
) -> list[RunRow]:
    """The named runs, and those beyond the limits, possibly twice.

    Raises: `UnknownReference`, and `RunBusy` when a process has a named run.
    """
    named = [tables.row_of(run) for run in runs or ()]
    claimed = tables.holders(named)
    for row in named:
        if row.no in claimed:
            raise busy(row.id, claimed[row.no])
    old = outdated(tables.summaries(tables.rows()), now, keep, older_than_s)
    return named + [tables.row_of(run) for run in old]


def beyond(tables: Tables, aim_bytes: int) -> list[RunRow]:
    """The oldest unclaimed runs without which the others use at most `aim_bytes`."""
    latest = tables.rows()
    claimed = tables.holders(latest)
    free = [row for row in latest if row.no not in claimed]
    reached = ReachableRecords(tables)
    for row in latest:
        if row.no in claimed:
            reached.add(row)
    for index, row in enumerate(free):
        reached.add(row)
        if reached.marks.size_bytes > aim_bytes:
            return free[index:]
    return []


def lots(rows: Sequence[RunRow], at_once: int = AT_ONCE) -> Iterator[list[RunRow]]:
    """`rows` without duplicates, at most `at_once` at a time."""
    once = list({row.no: row for row in rows}.values())
    for start in range(0, len(once), at_once):
        yield once[start : start + at_once]
