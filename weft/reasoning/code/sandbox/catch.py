"""A pipe that a process writes to and the event loop reads, up to a limit. Knows bytes only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Final

_PIECE_BYTES: Final = 64 * 1024


class Catch:
    """What is written to `writer`, in `held`: at most `most_bytes`, then `flooded` is set.

    Used in a `with` block, read by hand: a process that kept the writing end and outlives all
    others can then never keep us waiting for the end of the stream. `on_flood` is called once.
    """

    def __init__(self, most_bytes: int) -> None:
        self.held = bytearray()
        self.flooded = False
        self.on_flood: Callable[[], None] | None = None
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        self._writer_open = True
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def __enter__(self) -> Catch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.release()
        self._loop.remove_reader(self._reader)
        os.close(self._reader)

    def release(self) -> None:
        """The process has its copy of the writing end: let go of ours."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def drain(self) -> None:
        """Take what has been written already."""
        while self._read():
            pass

    def _read(self) -> bool:
        if self.flooded:
            return False
        try:
            piece = os.read(self._reader, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self.held += piece[: self._most_bytes - len(self.held) + 1]
        if len(self.held) > self._most_bytes:
            del self.held[self._most_bytes :]
            self.flooded = True
            if self.on_flood is not None:
                self.on_flood()
        if not piece or self.flooded:
            self._loop.remove_reader(self._reader)
            return False
        return True
