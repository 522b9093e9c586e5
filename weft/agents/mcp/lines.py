"""Bytes to lines of bounded length; what goes on for longer is skipped, not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_KEPT: Final = 4 * 1024


class Oversized:
    """A line that is longer than it may be, of which only the two ends are known."""

    def __init__(self, head: bytes) -> None:
        self.head = head[:_KEPT]
        self.tail = head[-_KEPT:]

    def add(self, piece: bytes) -> None:
        """The line goes on with `piece`."""
        self.tail = (self.tail + piece)[-_KEPT:]


class Lines:
    """Takes bytes apart into lines of at most `limit` bytes, without their ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._over: Oversized | None = None

    def feed(self, piece: bytes) -> Iterator[bytes | Oversized]:
        """The lines that `piece` completes."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._over or bytes(self._line)
            self._line.clear()
            self._over = None
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._over is not None:
            self._over.add(piece)
            return
        self._line += piece
        if len(self._line) > self._limit:
            self._over = Oversized(bytes(self._line))
            self._line.clear()
