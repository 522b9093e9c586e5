"""A server's log on disk: readable by the user alone, bounded, the previous part kept beside it.

Does not know what the lines mean.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

_LARGEST_BYTES = 32 * 1024 * 1024
_REMEMBERED = 2000


class LogFile:
    """Takes lines. `last` remembers the latest of them. A full disk loses lines, nothing else."""

    def __init__(self, path: Path, largest_bytes: int = _LARGEST_BYTES) -> None:
        self.path = path
        self.last: deque[str] = deque(maxlen=_REMEMBERED)
        self._largest_bytes = largest_bytes
        self._written = 0
        self._file: TextIOWrapper | None = None

    def __call__(self, line: str) -> None:
        """Write one line."""
        self.last.append(line)
        with suppress(OSError, ValueError):
            if self._file is None:
                self._file = self._open()
            self._written += self._file.write(line + "\n")
            self._file.flush()
            if self._written > self._largest_bytes:
                self._file.close()
                self.path.replace(self.path.with_suffix(".log.1"))
                self._written = 0
                self._file = None

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(self.path, flags, 0o600)
        return os.fdopen(fd, "a", encoding="utf-8", errors="replace")
