"""What the tables of a journal say of its runs, in whatever database they are.

Does not write, and knows no SQL: each database says how it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from weft.core.errors import StoreError
from weft.core.events import RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Numbered, RunHeader, RunSummary, Salvage
from weft.core.progress import Progress, unknown_run
from weft.engine.journal.rows import Batch, BatchReader, Values, header_in, wrong_values

PAGE = 64
"""Batches that are read at once."""
_CLOSEST_OF = 10_000


class Row(NamedTuple):
    """A run as its table has it.

    `end`: the number of its last record, where it has ended; None in a row that does not tell.
    `logged`: its `once` calls are known beside the database, too.
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
    """Reads a journal through one connection. `values`: what was kept apart, by name.

    `errors`: what the database raises where it cannot read its own pages.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self) -> None:
        self.values = Values(self.fetch)

    # -- what each database is asked in its own words ------------------------------------------

    @abstractmethod
    def found(self, run: RunId) -> Row | None:
        """The row of a run, if there is one."""

    @abstractmethod
    def rows(self, flow: str | None = None, limit: int | None = None) -> list[Row]:
        """The rows of all runs, or those of one flow; the latest first."""

    @abstractmethod
    def sealed_header(self, row: Row) -> bytes | None:
        """The header of a run, unless it was removed meanwhile."""

    @abstractmethod
    def asking(self, row: Row) -> list[NodeId]:
        """The nodes of a run that ask a person, in order."""

    @abstractmethod
    def last_seq(self, row: Row) -> int:
        """The number of the last record; 0 when there is none."""

    @abstractmethod
    def page_of(self, row: Row, after: int) -> list[Batch]:
        """The next batches that end after the record `after`, in order, `PAGE` at most."""

    @abstractmethod
    def fetch(self, digest: bytes) -> bytes | None:
        """What is stored under a digest, if anything is."""

    @abstractmethod
    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        """All digests, and what is stored under them."""

    @abstractmethod
    def holders(self, rows: Sequence[Row]) -> Mapping[int, str]:
        """Who has which run, by its number; of `rows` at least."""

    # -- what follows from that ----------------------------------------------------------------

    def row_of(self, run: RunId) -> Row:
        """The row of a run. Raises: `UnknownReference`."""
        found = self.found(run)
        if found is None:
            raise unknown_run(run, [row.id for row in self.rows(limit=_CLOSEST_OF)])
        return found

    def header_of(self, row: Row) -> bytes:
        """The sealed header of a run. Raises: `UnknownReference` when it was removed meanwhile."""
        found = self.sealed_header(row)
        if found is None:
            raise unknown_run(row.id, ())
        return found

    def header(self, run: RunId) -> RunHeader:
        """What a run was. Raises: `UnknownReference`, `StoreError`."""
        return header_in(self.header_of(self.row_of(run)), self.values.get)

    def progress_of(self, row: Row) -> Progress:
        """How a run stands."""
        return Progress(row.part, row.status, self.asking(row))

    def summaries(self, rows: Sequence[Row]) -> list[RunSummary]:
        """Each run in one line."""
        held = self.holders([row for row in rows if row.status is None])
        return [self._summary(row, row.no in held) for row in rows]

    def batches_of(self, row: Row, after: int = 0) -> Iterator[Batch]:
        """All batches that end after the record `after`, in order."""
        while page := self.page_of(row, after):
            yield from page
            after = page[-1].seq

    def check_end(self, row: Row, seq: int) -> None:
        """Raises: `StoreError` where the record `seq` is the last of a run that has more."""
        if row.end is not None and seq < row.end:
            raise StoreError(f"the records from {seq + 1} to {row.end} are missing")

    def salvage(self, row: Row) -> Salvage:
        """What is sound of a run. Raises nothing: what keeps it from being read is a problem."""
        problems: list[str] = []
        records: list[Numbered] = []
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
        """Reads everything; what is damaged or missing, in sentences."""
        yield from wrong_values(self.bodies())
        for row in self.rows():
            yield from (f"run {row.id!r}: {text}" for text in self.salvage(row).problems)

    def _summary(self, row: Row, held: bool) -> RunSummary:
        progress = self.progress_of(row)
        return RunSummary(
            run=row.id,
            flow=row.flow,
            standing=progress.standing(held),
            wall=row.wall,
            ended_wall=row.ended_wall,
            parts=row.part,
            records=self.last_seq(row),
            asking=tuple(progress.asking),
        )
