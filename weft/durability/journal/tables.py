"""The runs in the tables of a journal, in any database. Contains no SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar, NamedTuple

from weft.core.errors import StoreError
from weft.core.events import RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import (
    NumberedRecord,
    RunHeader,
    RunProgress,
    RunSummary,
    Salvage,
    unknown_run,
)
from weft.durability.journal.rows import (
    BatchReader,
    RecordBatch,
    StoredValues,
    header_in,
    wrong_values,
)

PAGE = 64
"""Batches that are read at once."""
_CLOSEST_OF = 10_000


class RunRow(NamedTuple):
    """The row of a run.

    `end`: the number of its last record, where it has ended; None in an older row. `logged`: there
    is a file of its `once` calls next to the database.
    """

    no: int
    id: RunId
    flow: str
    wall: str
    ended_wall: str
    part: int
    status: RunStatus | None
    end: int | None = None
    logged: bool = False


class Tables(ABC):
    """Reads a journal through one connection. `values`: separately stored values, by name.

    `errors`: the exceptions of the database where it cannot read its own pages.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self) -> None:
        self.values = StoredValues(self.fetch)

    # -- queries of each database --------------------------------------------------------------

    @abstractmethod
    def found(self, run: RunId) -> RunRow | None:
        """The row of a run, if there is one."""

    @abstractmethod
    def rows(self, flow: str | None = None, limit: int | None = None) -> list[RunRow]:
        """The rows of all runs, or those of one flow; the latest first."""

    @abstractmethod
    def sealed_header(self, row: RunRow) -> bytes | None:
        """The header of a run, unless it was removed meanwhile."""

    @abstractmethod
    def asking(self, row: RunRow) -> list[NodeId]:
        """The nodes of a run that ask a person, in order."""

    @abstractmethod
    def last_seq(self, row: RunRow) -> int:
        """The number of the last record; 0 when there is none."""

    @abstractmethod
    def page_of(self, row: RunRow, after: int) -> list[RecordBatch]:
        """The next batches that end after the record `after`, in order, at most `PAGE`."""

    @abstractmethod
    def fetch(self, digest: bytes) -> bytes | None:
        """The value stored under a digest, if any."""

    @abstractmethod
    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        """All digests with their stored values."""

    @abstractmethod
    def holders(self, rows: Sequence[RunRow]) -> Mapping[int, str]:
        """The holders of claimed runs by run number, at least for `rows`."""

    # -- what follows from them ----------------------------------------------------------------

    def row_of(self, run: RunId) -> RunRow:
        """The row of a run. Raises: `UnknownReference`."""
        found = self.found(run)
        if found is None:
            raise unknown_run(run, [row.id for row in self.rows(limit=_CLOSEST_OF)])
        return found

    def header_of(self, row: RunRow) -> bytes:
        """The sealed header of a run. Raises: `UnknownReference` when it was removed meanwhile."""
        found = self.sealed_header(row)
        if found is None:
            raise unknown_run(row.id, ())
        return found

    def header(self, run: RunId) -> RunHeader:
        """The header of a run. Raises: `UnknownReference`, `StoreError`."""
        return header_in(self.header_of(self.row_of(run)), self.values.get)

    def progress_of(self, row: RunRow) -> RunProgress:
        """The state of a run."""
        return RunProgress(row.part, row.status, self.asking(row))

    def summaries(self, rows: Sequence[RunRow]) -> list[RunSummary]:
        """A summary of each run."""
        claimed = self.holders([row for row in rows if row.status is None])
        return [self._summary(row, row.no in claimed) for row in rows]

    def batches_of(self, row: RunRow, after: int = 0) -> Iterator[RecordBatch]:
        """All batches that end after the record `after`, in order."""
        while page := self.page_of(row, after):
            yield from page
            after = page[-1].seq

    def check_end(self, row: RunRow, seq: int) -> None:
        """Raises: `StoreError` where the record `seq` is the last one, but the run has more."""
        if row.end is not None and seq < row.end:
            raise StoreError(f"the records from {seq + 1} to {row.end} are missing")

    def salvage(self, row: RunRow) -> Salvage:
        """The sound part of a run. Raises nothing: reports what cannot be read as a problem."""
        problems: list[str] = []
        records: list[NumberedRecord] = []
        header = RunHeader(row.id, row.flow, row.wall, "")
        try:
            stored = header_in(self.header_of(row), self.values.get)
            if (stored.run, stored.flow, stored.wall) != (row.id, row.flow, row.wall):
                problems.append("its row and its header do not agree")
            header = stored
        except StoreError as error:
            problems.append(f"its header cannot be read: {error.message}")
        reader = BatchReader(self.values.get)
        try:
            for batch in self.batches_of(row):
                records += reader.salvage(batch, problems)
            self.check_end(row, reader.seq)
        except StoreError as error:
            problems.append(error.message)
        except self.errors as error:
            problems.append(f"the records after {reader.seq} cannot be read: {error}")
        return Salvage(header, tuple(records), tuple(problems))

    def complaints(self) -> Iterator[str]:
        """Read everything; yield what is damaged or missing, in sentences."""
        yield from wrong_values(self.bodies())
        for row in self.rows():
            yield from (f"run {row.id!r}: {text}" for text in self.salvage(row).problems)

    def _summary(self, row: RunRow, claimed: bool) -> RunSummary:
        progress = self.progress_of(row)
        return RunSummary(
            run=row.id,
            flow=row.flow,
            standing=progress.standing(claimed),
            wall=row.wall,
            ended_wall=row.ended_wall,
            parts=row.part,
            records=self.last_seq(row),
            asking=tuple(progress.asking),
        )


Using = Callable[[], AbstractContextManager[Tables]]
"""Gives exclusive use of a journal's tables for a while."""


def iter_records(
    using: Using, row: RunRow, after: int, where: str = "the journal"
) -> Iterator[NumberedRecord]:
    """The records of a run after the record `after`, in order.

    Raises: `StoreError`, which names `where`, run and remedy, for damaged or missing records.
    """
    reader: BatchReader | None = None
    full = True
    while full:
        with using() as tables:
            reader = reader or BatchReader(tables.values.get, after)
            page = tables.page_of(row, reader.seq)
        full = len(page) == PAGE
        for batch in page:
            with using(), _named_errors(where, row):
                records = reader.read(batch)
            yield from (record for record in records if record.seq > after)
    with using() as tables, _named_errors(where, row):
        tables.check_end(row, reader.seq if reader is not None else after)


@contextmanager
def _named_errors(where: str, row: RunRow) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        hint = f"`weft runs show {row.id} --salvage` reads what is sound; `weft runs check` all"
        raise StoreError(f"{where}, run {row.id!r}: {error.message}", hint=hint) from error
