"""The `once` calls of a run, in a file next to the database, and what the record lacks of them.

Its first line says how far the record went at the last write; each other line is a record of a
call. An intent is synced before its call is made, a result is not.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.codec import decode, encode
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Losses, LostRun, Record
from weft.durability.journal.rows import START
from weft.durability.journal.sqlite.tables import SqliteTables
from weft.durability.journal.tables import RunRow
from weft.durability.synced_folder import sync_folder

_FLAGS: Final = os.O_RDWR | getattr(os, "O_BINARY", 0)
_HEAD_BYTES: Final = 96
_MAX_BYTES: Final = 1 << 16
"""A call with longer arguments is kept without them, and a longer result is not kept."""


class OnceEntry(NamedTuple):
    """A record of a call, and its batch: the number of the last record and the chain."""

    seq: int
    chain: bytes
    record: Record


@dataclass(frozen=True, slots=True)
class OnceState:
    """The content of a run's file. `seq` and `chain` are those of the last batch it knows of.

    `notes`: earlier losses; `unsure` as in `Losses`; `damage`: why not all could be read.
    """

    run: RunId
    seq: int = 0
    chain: bytes = START
    entries: tuple[OnceEntry, ...] = ()
    notes: tuple[str, ...] = ()
    unsure: bool = False
    damage: str = ""


class OnceLog:
    """The file of a claimed run. Raises: `OSError`."""

    def __init__(self, path: Path, state: OnceState) -> None:
        self._path = path
        self._open: set[tuple[NodeId, CallId]] = set()
        self._is_name_synced = False
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part_file = path.with_name(f"{path.name}.part")
        about = {"run": state.run, "notes": state.notes, "unsure": state.unsure}
        entries = [line for line in map(_entry, state.entries) if line]
        text = b"".join([_line(json.dumps(about)), *entries])
        self._entries, self._end = len(entries), _HEAD_BYTES + len(text)
        must_sync = bool(state.entries or state.notes)
        self._file: int | None = os.open(part_file, os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            _write(self._file, 0, _head(state.seq, self._entries, state.chain) + text)
            if must_sync:
                os.fsync(self._file)
            self.close()  # Windows renames no open file
            part_file.replace(path)
            self._file = os.open(path, _FLAGS)
            if must_sync:
                self._sync_name()
        except BaseException:
            self.close()
            part_file.unlink(missing_ok=True)
            raise

    @property
    def empty(self) -> bool:
        """Whether it contains no call."""
        return not self._entries

    @property
    def waits(self) -> bool:
        """Whether a call in it may still return."""
        return bool(self._open)

    def calls(self, records: Sequence[Record]) -> list[Record]:
        """The records of `once` calls among `records`."""
        found: list[Record] = []
        for record in records:
            if isinstance(record, ToolCalled):
                if record.effect == "once":
                    self._open.add((record.node, record.call))
                    found.append(record)
            elif (
                self._open
                and isinstance(record, ToolReturned)
                and (record.node, record.call) in self._open
            ):
                found.append(record)
        return found

    @contextmanager
    def room_for(self, seq: int, chain: bytes, calls: Sequence[Record]) -> Iterator[None]:
        """Reserve the space that `add` needs, while it is still possible to wait for it.

        A failure inside releases it; a process that dies leaves empty lines.
        """
        length = sum(map(len, _entries(seq, chain, calls)))
        if not length or self._file is None:
            yield
            return
        try:
            _write(self._file, self._end, b"\n" * length)
            yield
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise

    def add(self, seq: int, chain: bytes, calls: Sequence[Record] = ()) -> None:
        """Note a batch that was added to the record, with its `calls`. Syncs the intents.

        May be repeated where it fails.
        """
        if self._file is None:
            return
        if not calls:
            _write(self._file, 0, _head(seq, self._entries, chain))
            return
        lines = _entries(seq, chain, calls)
        text = b"".join(lines)
        _write(self._file, self._end, text)
        _write(self._file, 0, _head(seq, self._entries + len(lines), chain))
        if any(isinstance(call, ToolCalled) for call in calls):
            os.fsync(self._file)
            self._sync_name()
        self._entries += len(lines)
        self._end += len(text)

    def close(self) -> None:
        """Close the file. Harmless when repeated."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)

    def remove(self) -> None:
        """Close and remove the file."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _sync_name(self) -> None:
        if not self._is_name_synced:
            for folder in (self._path.parent, self._path.parent.parent):
                sync_folder(folder)
            self._is_name_synced = True


def read_once_file(path: Path) -> OnceState | None:
    """The content of the file; None where there is none. Reports damage in `damage`.

    Lines that the first line does not count were not synced: if damaged, their calls were not made.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return OnceState(RunId(""), damage=f"it cannot be read: {error.strerror}")
    if not data:
        return OnceState(RunId(""), damage="it is empty")
    seq, count, chain = _read_head(data[:_HEAD_BYTES])
    lines = data[_HEAD_BYTES:].split(b"\n")[:-1]
    state, damage = _read_about(lines[:1])
    entries, whole = _read_entries(lines[1:], count)
    if count < 0:
        damage = "its first line is damaged"
    elif not whole:
        damage = damage or "calls are damaged or missing"
    if entries and entries[-1].seq > seq:
        seq, chain = entries[-1].seq, entries[-1].chain
    return replace(state, seq=seq, chain=chain, entries=entries, damage=damage)


def _read_entries(lines: Sequence[bytes], count: int) -> tuple[tuple[OnceEntry, ...], bool]:
    """The entries in `lines`, and whether at least the first `count` of them could be read."""
    entries: list[OnceEntry] = []
    whole = len(lines) >= count
    for index, line in enumerate(lines):
        try:
            entries.append(_read_entry(line))
        except (ValueError, TypeError, StoreError):
            whole &= index >= count >= 0
    return tuple(entries), whole


def _read_about(lines: Sequence[bytes]) -> tuple[OnceState, str]:
    try:
        about = json.loads(_text(lines[0]))
        return OnceState(
            RunId(about["run"]), notes=tuple(about["notes"]), unsure=bool(about["unsure"])
        ), ""
    except (ValueError, IndexError, KeyError, TypeError):
        return OnceState(RunId(""), unsure=True), "its second line is damaged"


def _read_head(head: bytes) -> tuple[int, int, bytes]:
    """The last record's number and the number of calls, -1 in a damaged line; and the chain."""
    try:
        seq, count, chain = _text(head.rstrip()).split(" ")
        return int(seq), int(count), b"" if chain == "-" else bytes.fromhex(chain)
    except ValueError:
        return 0, -1, START


def _read_entry(line: bytes) -> OnceEntry:
    seq, chain, text = _text(line).split(" ", 2)
    record = decode(text)
    if not isinstance(record, ToolCalled | ToolReturned):
        raise TypeError(type(record).__name__)
    return OnceEntry(int(seq), b"" if chain == "-" else bytes.fromhex(chain), record)


def _entries(seq: int, chain: bytes, calls: Iterable[Record]) -> list[bytes]:
    lines = (_entry(OnceEntry(seq, chain, call)) for call in calls)
    return [line for line in lines if line]


def _entry(entry: OnceEntry) -> bytes:
    """The line of a record; empty for a record that is not kept."""
    record = entry.record
    text = encode(record)
    if len(text) > _MAX_BYTES:
        if not isinstance(record, ToolCalled):
            return b""
        text = encode(replace(record, arguments={"left out": f"{len(text):,} characters"}))
    return _line(f"{entry.seq} {entry.chain.hex() or '-'} {text}")


def _head(seq: int, entries: int, chain: bytes) -> bytes:
    body = b"%d %d %b" % (seq, entries, chain.hex().encode() or b"-")
    return (b"%08x %b" % (zlib.crc32(body), body)).ljust(_HEAD_BYTES - 1) + b"\n"


def _write(file: int, offset: int, data: bytes) -> None:
    """Write all of `data` at `offset`. Raises: `OSError`, possibly after a part of it."""
    os.lseek(file, offset, os.SEEK_SET)
    written = os.write(file, data)
    if written == len(data):
        return
    left = memoryview(data)[written:]
    while left:  # short of space, the system writes a part, and reports the error the next time
        left = left[os.write(file, left) :]


def _line(text: str) -> bytes:
    body = text.encode("utf-8", "surrogatepass")
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _text(line: bytes) -> str:
    """The text of a line. Raises: `ValueError` where its checksum does not fit."""
    if int(line[:8], 16) != zlib.crc32(line[9:]):
        raise ValueError("damaged")
    return line[9:].decode("utf-8", "surrogatepass")


_UNSURE = "a once call that no record knows may have been made: each such call is unknown"


def losses(tables: SqliteTables, row: RunRow) -> Losses:
    """What is missing of an unclaimed run. Raises: `sqlite3.Error`."""
    if not row.logged or row.status == "succeeded":
        return Losses()
    path = tables.once_file(row.no)
    state = read_once_file(path)
    if state is None:
        return _unsure([f"the file {path} is missing, which says how far the record went"])
    if state.damage and not state.run:
        return _unsure([f"the file {path} is damaged: {state.damage}"], state.entries)
    if state.run != row.id:
        return _unsure([f"the file {path} is that of another run, {state.run!r}"])
    return _compared(tables, row, path, state)


def _compared(tables: SqliteTables, row: RunRow, path: Path, state: OnceState) -> Losses:
    notes, unsure, last = list(state.notes), state.unsure, tables.last_seq(row)
    if state.damage:
        notes.append(f"the file {path} is damaged: {state.damage}")
        unsure = True
    if state.seq > last:
        notes.append(f"the records from {last + 1} to {state.seq} are missing")
    elif state.chain != tables.chain_at(row, state.seq):
        notes.append(f"the file {path} does not fit the records")
        unsure = True
    elif tables.batches_after(row, state.seq) > 1:  # a process may die before noting the last one
        notes.append(f"the file {path} is older than the records")
        unsure = True
    if unsure and _UNSURE not in notes:
        notes.append(_UNSURE)
    entries = tuple(_unrecorded(tables, row, state.entries))
    return Losses(tuple(notes), tuple(entry.record for entry in entries), unsure)


def _unrecorded(
    tables: SqliteTables, row: RunRow, entries: tuple[OnceEntry, ...]
) -> Iterator[OnceEntry]:
    """The entries after the last one whose batch is in the record."""
    recorded = 0
    for count in range(len(entries), 0, -1):
        seq, chain, _ = entries[count - 1]
        if tables.chain_at(row, seq) == chain:
            recorded = count
            break
    yield from entries[recorded:]


def _unsure(notes: Iterable[str], entries: tuple[OnceEntry, ...] = ()) -> Losses:
    return Losses((*notes, _UNSURE), tuple(entry.record for entry in entries), True)


def lost_runs(tables: SqliteTables) -> Iterator[LostRun]:
    """The runs that have a file of `once` calls, but are not in the journal."""
    for path, state in _orphans(tables):
        if state.seq and state.run:  # else its process died while it began the run
            calls = tuple(entry.record for entry in state.entries)
            yield LostRun(state.run, state.seq, calls, str(path))


def orphans(tables: SqliteTables) -> Iterator[str]:
    """Problems of the files of `once` calls whose runs are not in the journal, in sentences."""
    for path, state in _orphans(tables):
        if state.damage:
            yield f"the file {path} is damaged: {state.damage}; the run that it is of is missing"
        elif state.seq:
            yield f"the run {state.run!r} is missing: {path} says that it had {state.seq} records"


def last_number(tables: SqliteTables) -> int:
    """The largest number that a run has had, by the files next to the database."""
    return max([0, *(number for number, _ in _files(tables))])


def _orphans(tables: SqliteTables) -> Iterator[tuple[Path, OnceState]]:
    """The files of runs that are not in the journal, with their content."""
    files = _files(tables)
    if not files:
        return
    existing = tables.having_runs(number for number, _ in files)
    for number, path in files:
        state = None if number in existing else read_once_file(path)
        # A run may have been begun or removed since.
        if state is not None and not tables.has_number(number) and path.exists():
            yield path, state


def _files(tables: SqliteTables) -> list[tuple[int, Path]]:
    """Files of `once` calls by the numbers of their runs; 0 for files that were set aside."""
    folder, names = tables.once_files, []
    with suppress(FileNotFoundError, PermissionError):  # another user's folder
        names = os.listdir(folder)  # noqa: PTH208 - called at each begin: names suffice
    numbered = [(int(n) if n.isdecimal() else 0, n) for n in names if not n.endswith(".part")]
    return [(number, folder / name) for number, name in sorted(numbered)]
