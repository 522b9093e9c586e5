"""What the record of a run lacks at its end, by the file of its `once` calls.

Mends nothing: whoever claims the run adds what is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from weft.core.ports.journal import Losses, LostRun
from weft.engine.journal.sqlite.once import Entry, OnceState, read
from weft.engine.journal.sqlite.tables import SqliteTables
from weft.engine.journal.tables import Row

_UNSURE = "a once call that no record knows may have been made: each such call is unknown"


def losses(tables: SqliteTables, row: Row) -> Losses:
    """What is missing of a run that no process has. Raises: `sqlite3.Error`."""
    if not row.logged or row.status == "succeeded":
        return Losses()
    path = tables.once_file(row.no)
    state = read(path)
    if state is None:
        return _unsure([f"the file {path} is missing, which says how far the record went"])
    if state.damage and not state.run:
        return _unsure([f"the file {path} is damaged: {state.damage}"], state.entries)
    if state.run != row.id:
        return _unsure([f"the file {path} is that of another run, {state.run!r}"])
    return _compared(tables, row, path, state)


def _compared(tables: SqliteTables, row: Row, path: Path, state: OnceState) -> Losses:
    notes, unsure, last = list(state.notes), state.unsure, tables.last_seq(row)
    if state.damage:
        notes.append(f"the file {path} is damaged: {state.damage}")
        unsure = True
    if state.seq > last:
        notes.append(f"the records from {last + 1} to {state.seq} are missing")
    elif state.chain != tables.chain_at(row, state.seq):
        notes.append(f"the file {path} does not fit the records")
        unsure = True
    elif tables.batches_after(row, state.seq) > 1:  # a process may die before it notes the last
        notes.append(f"the file {path} is older than the records")
        unsure = True
    if unsure and _UNSURE not in notes:
        notes.append(_UNSURE)
    entries = tuple(_unknown_to(tables, row, state.entries))
    return Losses(tuple(notes), tuple(entry.record for entry in entries), unsure)


def _unknown_to(tables: SqliteTables, row: Row, entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """Those after the last one whose batch is in the record."""
    known = 0
    for place in range(len(entries), 0, -1):
        seq, chain, _ = entries[place - 1]
        if tables.chain_at(row, seq) == chain:
            known = place
            break
    yield from entries[known:]


def _unsure(notes: Iterable[str], entries: tuple[Entry, ...] = ()) -> Losses:
    return Losses((*notes, _UNSURE), tuple(entry.record for entry in entries), True)


def lost_runs(tables: SqliteTables) -> Iterator[LostRun]:
    """The runs that files of `once` calls tell of, and the journal does not have."""
    for path, state in _orphans(tables):
        if state.seq and state.run:  # else its process died while it began the run
            calls = tuple(entry.record for entry in state.entries)
            yield LostRun(state.run, state.seq, calls, str(path))


def orphans(tables: SqliteTables) -> Iterator[str]:
    """What is wrong with the files of `once` calls: runs that the journal does not have."""
    for path, state in _orphans(tables):
        if state.damage:
            yield f"the file {path} is damaged: {state.damage}; the run that it is of is missing"
        elif state.seq:
            yield f"the run {state.run!r} is missing: {path} says that it had {state.seq} records"


def last_number(tables: SqliteTables) -> int:
    """The largest number that a run has had, as the files beside the database tell."""
    return max([0, *(number for number, _ in _files(tables))])


def _orphans(tables: SqliteTables) -> Iterator[tuple[Path, OnceState]]:
    """The files of runs that the journal does not have, and what they say."""
    files = _files(tables)
    if not files:
        return
    known = tables.having_runs(number for number, _ in files)
    for number, path in files:
        state = None if number in known else read(path)
        # A run may have been begun or removed since.
        if state is not None and not tables.has_number(number) and path.exists():
            yield path, state


def _files(tables: SqliteTables) -> list[tuple[int, Path]]:
    """Files of `once` calls, by the numbers of their runs; 0 for what was put aside."""
    folder, names = tables.once_files, []
    with suppress(FileNotFoundError, PermissionError):  # of another user, who alone may look
        names = os.listdir(folder)  # noqa: PTH208 - asked at each begin: names will do
    numbered = [(int(n) if n.isdecimal() else 0, n) for n in names if not n.endswith(".part")]
    return [(number, folder / name) for number, name in sorted(numbered)]
