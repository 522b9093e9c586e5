"""Which values the rows of a journal refer to, directly or through others.

Does not know which rows there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from weft.engine.journal.blobs import as_text, named, unpacked, unsealed
from weft.engine.journal.rows import Fetch

# Inside a JSON string the quotes would be escaped: only the codec writes this.
_REFERENCE = re.compile(r'\{"~r":"([A-Za-z0-9_-]{32})"\}')
_ROW_BYTES = 48  # what a row costs beside its body, roughly


class Marks:
    """What is reached from some rows: `digests` of values, and `size_bytes` of all of it."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self.digests: set[bytes] = set()
        self.size_bytes = 0

    def follow(self, rows: Sequence[bytes]) -> None:
        """Mark what sealed rows refer to. Raises: `StoreError` for damaged ones."""
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
