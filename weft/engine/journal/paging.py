"""The records of a run, a page at a time: between two pages others may use the connection.

Does not know who they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from weft.core.ports.journal import Numbered
from weft.engine.journal.rows import records_in
from weft.engine.journal.tables import PAGE, Row, Tables

Using = Callable[[], AbstractContextManager[Tables]]
"""Has a journal's tables for itself for a while."""


def numbered(using: Using, row: Row, after: int) -> Iterator[Numbered]:
    """The records of a run behind the record `after`, in order. Raises: `StoreError`."""
    full = True
    while full:
        with using() as tables:
            page = tables.page_of(row, after)
        full = len(page) == PAGE
        for batch in page:
            with using() as tables:
                records = list(records_in(batch, tables.values.get))
            yield from (record for record in records if record.seq > after)
            after = batch[0]
