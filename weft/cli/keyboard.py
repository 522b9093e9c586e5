"""Lines from a terminal, awaited. A thread of its own reads them, for the whole process.

Reading cannot be interrupted, so the thread is a daemon and reads the file descriptor itself: it
holds no lock that the interpreter needs on its way out.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from functools import cache

if sys.platform != "win32":
    import termios


@cache
def keyboard() -> Keyboard | None:
    """The person at this process's terminal; None when there is nobody. Always the same one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Keyboard(sys.stdin.fileno())


class Keyboard:
    """The lines typed on file descriptor `fd`, one for each call of `line`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def forget(self) -> None:
        """Drop what was typed until now: it cannot be meant for a question not yet shown."""
        if sys.platform != "win32" and os.isatty(self._fd):
            termios.tcflush(self._fd, termios.TCIFLUSH)
        while not self._closed and not self._lines.empty():
            self._closed = self._lines.get_nowait() is None

    async def line(self) -> str | None:
        """The next line, without its end; None when there will be no more."""
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._read, args=(loop,), daemon=True)
            self._thread.start()
        if self._closed:
            return None
        line = await self._lines.get()
        self._closed = line is None
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while True:
            try:
                piece = os.read(self._fd, 4096)
            except OSError:
                piece = b""
            *lines, rest = (rest + piece).split(b"\n")
            try:
                for line in lines:
                    text = line.decode("utf-8", "replace")
                    loop.call_soon_threadsafe(self._lines.put_nowait, text)
                if not piece:
                    loop.call_soon_threadsafe(self._lines.put_nowait, None)
                    return
            except RuntimeError:  # the loop is closed: nobody listens any more
                return
