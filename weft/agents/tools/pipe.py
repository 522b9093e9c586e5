"""A pipe that a subprocess writes to and the event loop reads, up to a limit.

Knows bytes only. It is read by hand, without a transport: a process that inherited the writing end
and outlives its parent can then never keep us waiting for the end of the stream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Final

_PIECE_BYTES: Final = 64 * 1024


class Pipe:
    """`received` gets every piece as it comes; `flooded` is called once, beyond `max_bytes`.

    Used in a `with` block. `writer` is the file descriptor for the subprocess.
    """

    def __init__(
        self, max_bytes: int, received: Callable[[bytes], None], flooded: Callable[[], None]
    ) -> None:
        self._left = max_bytes
        self._received = received
        self._flooded = flooded
        self._loop = asyncio.get_running_loop()
        self._reader, self.writer = os.pipe()
        self._writer_open = True
        self._reading = True
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def __enter__(self) -> Pipe:
        return self

    def started(self) -> None:
        """The subprocess has its copy of the writing end: let go of ours."""
        if self._writer_open:
            self._writer_open = False
            os.close(self.writer)

    def drain(self) -> None:
        """Take what has been written already."""
        while self._reading and self._read():
            pass

    def _read(self) -> bool:
        try:
            piece = os.read(self._reader, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self._left -= len(piece)
        if piece and self._left >= 0:
            self._received(piece)
            return True
        self._stop()
        if piece:
            self._flooded()
        return False

    def _stop(self) -> None:
        self._reading = False
        self._loop.remove_reader(self._reader)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.started()
        self._stop()
        os.close(self._reader)
