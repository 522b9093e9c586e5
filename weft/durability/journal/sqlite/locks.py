"""File locks that end with their process, however it ends.

A process forked without a new program shares the locks of its parent.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path

from weft.core.ports.queue import holder_name

_TRIES = 20
_PAUSE_S = 0.005  # checking whether a lock is taken takes it for a moment


class FileLock:
    """This process's lock on the file `path`, which contains the process's name."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Release the lock, and remove the file. Harmless when repeated."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            _remove(self._path, descriptor)


def locked(path: Path, *, name: bool = True) -> FileLock | None:
    """Take the lock on `path`; None: another holder has it. Raises: `OSError`.

    `name`: write this process's name into the file, which takes space on the disk.
    """
    for attempt in range(_TRIES):
        descriptor = _taken(path)
        if descriptor is not None:
            lock = FileLock(path, descriptor)
            try:
                if os.fstat(descriptor).st_size:
                    # Only then: ext4 writes a truncated file to the disk when it is closed, and
                    # removing the file waits for that.
                    os.ftruncate(descriptor, 0)
                if name:
                    os.write(descriptor, holder_name(os.getpid(), platform.node()).encode())
            except BaseException:
                lock.release()
                raise
            return lock
        if attempt + 1 < _TRIES:
            time.sleep(_PAUSE_S)
    return None


def is_locked(path: Path) -> bool:
    """Whether the lock on `path` is taken, or this user may not see whether."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True
    try:
        return not _try(descriptor, shared=True)
    finally:
        os.close(descriptor)


def holder(path: Path) -> str:
    """The name of the process that has the lock on `path`."""
    try:
        return path.read_text("utf-8") or "another process"
    except (OSError, UnicodeDecodeError):
        return "another process"


def _taken(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except FileNotFoundError:  # its folder is missing
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if _try(descriptor) and _is(path, descriptor):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _is(path: Path, descriptor: int) -> bool:
    """False when the file was removed between opening and locking it."""
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30  # Windows denies reading locked bytes; the holder's name comes before them

    def _try(descriptor: int, *, shared: bool = False) -> bool:
        del shared  # Windows has no shared lock here: a concurrent check sees the lock taken
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

    def _remove(path: Path, descriptor: int) -> None:
        os.close(descriptor)
        with suppress(OSError):  # it is locked again: Windows removes no open file
            path.unlink()

else:
    import fcntl

    def _try(descriptor: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _remove(path: Path, descriptor: int) -> None:
        path.unlink(missing_ok=True)  # before unlocking: a later lock is on another file
        os.close(descriptor)
