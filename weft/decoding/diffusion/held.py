"""Which columns of a cache hold keys of the text that is there now. Knows no keys.

A row of the cache outlives its text: what was left in it must not be seen by the next one.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from weft.core.errors import InternalError
from weft.decoding.diffusion.canvas import Bits, Slots


class Held:
    """By row: the columns that were written since the row was forgotten."""

    def __init__(self) -> None:
        self._columns: dict[int, Bits] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._columns

    def forget(self, row: int) -> None:
        """The row holds nothing from now on."""
        self._columns.pop(row, None)

    def write(self, row: int, columns: Slots) -> None:
        """Keys of the row's text are in `columns` now."""
        bits = self._sized(row, int(columns.max()) + 1)
        bits[columns] = True

    def lose(self, row: int, first: int) -> None:
        """From column `first` on there is something else."""
        self._sized(row, first)[first:] = False

    def check(self, row: int, end: int, besides: Slots) -> None:
        """Raises: `InternalError` where a column before `end` holds nothing and is not `besides`.

        Then a cache policy trusts keys that nobody has computed.
        """
        known = self._sized(row, end)[:end].copy()
        known[besides[besides < end]] = True
        if not known.all():
            raise InternalError(f"row {row} sees slot {int(known.argmin())}, which was never read")

    def unused(self, taken: Collection[int]) -> int:
        """The lowest row that holds nothing and is not `taken`."""
        row = 0
        while row in self._columns or row in taken:
            row += 1
        return row

    def _sized(self, row: int, columns: int) -> Bits:
        bits = self._columns.get(row, np.zeros(0, dtype=np.bool_))
        if columns > len(bits):
            bits = np.concatenate([bits, np.zeros(columns - len(bits), dtype=np.bool_)])
        self._columns[row] = bits
        return bits
