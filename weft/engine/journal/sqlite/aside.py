"""Moving a journal out of the way, with all that belongs to it, so that a new one can begin.

Does not look into it.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from weft.core.errors import StoreError
from weft.engine.journal.sqlite.locks import is_locked

_BESIDE = ("-wal", "-shm", ".claims", ".once")


def set_aside(path: Path) -> Path:
    """Rename the journal at `path` to `NAME.aside-N` and return that.

    Raises: `StoreError` when a process has a run of it, or it cannot be renamed.
    """
    claims = path.with_name(f"{path.name}.claims")
    if claims.is_dir() and any(is_locked(file) for file in claims.iterdir()):
        raise StoreError(f"the journal {path} is in use: a process has one of its runs")
    free = (path.with_name(f"{path.name}.aside-{number}") for number in count(1))
    aside = next(name for name in free if not name.exists())
    try:
        for end in _BESIDE:
            beside = path.with_name(path.name + end)
            if beside.exists():
                beside.rename(aside.with_name(aside.name + end))
        path.rename(aside)
    except OSError as error:
        raise StoreError(f"{path} cannot be moved away: {error}") from error
    return aside
