"""The records of a run, a page at a time: between two pages others may use the connection.

Does not know who they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from weft.core.errors import StoreError
from weft.core.ports.journal import Numbered
from weft.engine.journal.rows import BatchReader
from weft.engine.journal.tables import PAGE, Row, Tables

Using = Callable[[], AbstractContextManager[Tables]]
"""Has a journal's tables for itself for a while."""


def numbered(using: Using, row: Row, after: int, where: str = "the journal") -> Iterator[Numbered]:
    """The records of a run behind the record `after`, in order.

    Raises: `StoreError` that names `where` they are, the run and the remedy, for what is damaged or
    missing.
    """
    reader: BatchReader | None = None
    full = True
    while full:
        with using() as tables:
            reader = reader or BatchReader(tables.values.get, after)
            page = tables.page_of(row, reader.seq)
        full = len(page) == PAGE
        for batch in page:
            with using(), _told(where, row):
                records = reader.read(batch)
            yield from (record for record in records if record.seq > after)
    with using() as tables, _told(where, row):
        tables.check_end(row, reader.seq if reader is not None else after)


@contextmanager
def _told(where: str, row: Row) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        hint = f"`weft runs show {row.id} --salvage` reads what is sound; `weft runs check` all"
        raise StoreError(f"{where}, run {row.id!r}: {error.message}", hint=hint) from error
