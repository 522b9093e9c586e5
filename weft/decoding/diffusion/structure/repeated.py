"""Entries with commas between them, as many as are chosen one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.decoding.diffusion.structure.compiling import Compiling
from weft.decoding.diffusion.structure.parts import Choice, Parts, Text, joined
from weft.decoding.diffusion.structure.refused import NotASkeleton


class Repeated:
    """At most `most` entries; `entry` tells the one of a number, all alike from `distinct` on.

    `key` tells equal runs of entries.
    """

    def __init__(
        self,
        compiling: Compiling,
        key: tuple[object, ...],
        entry: Callable[[int], Parts],
        most: int | None,
        distinct: int = 0,
    ) -> None:
        self._compiling = compiling
        self._key = key
        self._entry = entry
        self._most = most
        self._distinct = distinct

    def parts(self, least: int) -> Parts:
        """At least `least` of them. Raises: `NotASkeleton` when that is more than `most`."""
        if self._most is not None and least > self._most:
            raise NotASkeleton("at least more entries than at most")
        parts: Parts = ()
        for number in range(least):
            parts = (*parts, *((Text(", "),) if number else ()), *self._entry(number))
        return (*parts, self._more(least)) if self._most is None or least < self._most else parts

    def _more(self, count: int) -> Choice:
        """None, or one more and then perhaps more."""
        key = (*self._key, count)
        if count > self._distinct + 1:  # its entries have been read at smaller counts
            return Choice(key, lambda: self._ways(count), exits=True, read=True)
        return self._compiling.choice(key, lambda: self._ways(count), exits=True)

    def _ways(self, count: int) -> Sequence[Parts]:
        if count == self._most:
            return [()]
        after = count if self._most is None and count > self._distinct + 1 else count + 1
        comma = (Text(", "),) if count else ()
        return [(), joined((*comma, *self._entry(count), self._more(after)))]
