"""Leases of servings. A lease is a locked file; the kernel unlocks the files of dead processes."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from weft.core.errors import ServeError
from weft.serving.vllm.supervise.state_folders import lease_folder


class LeaseFile:
    """One program's lease of one serving, until `release` or the end of the process."""

    def __init__(self, serving: str) -> None:
        """Take the lease. Raises: `ServeError` where the file cannot be created."""
        import fcntl  # not on Windows, where importing this module must not fail

        folder = lease_folder(serving)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        hidden = folder / f".{name}"
        self._path = folder / f"{name}.lease"
        try:
            self._fd = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            hidden.rename(self._path)  # locked before it is visible
        except OSError as error:
            raise ServeError(f"cannot take a lease in {folder}: {error}") from error
        self._released = False

    def release(self) -> None:
        """End the lease. Harmless when repeated."""
        if self._released:
            return
        self._released = True
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def holders(serving: str) -> int:
    """Number of current leases of the serving. Removes the files of dead programs."""
    return sum(_is_locked(path) for path in lease_folder(serving).glob("*.lease"))


def _is_locked(path: Path) -> bool:
    import fcntl

    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        with suppress(OSError):
            path.unlink()
        return False
    finally:
        os.close(fd)
