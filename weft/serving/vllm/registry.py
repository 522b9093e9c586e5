"""The registry: which servings there are, one file each, shared by all programs of a user.

Knows files, locks and whether a supervisor lives; starts and ends nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from weft.core.errors import ServeError, WeftError
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.places import forget, registry_folder

_LOCK_TIMEOUT_S = 20.0
_POLL_S = 0.02
_LONGEST_NAME = 24


@contextmanager
def locked() -> Iterator[None]:
    """Hold the registry: nobody else changes it meanwhile. Keep it short. Raises: `ServeError`."""
    lock = _lock()
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT_S, poll_interval=_POLL_S)
    except Timeout:
        raise _stuck(lock) from None
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def locked_meanwhile() -> AsyncIterator[None]:
    """As `locked`, without blocking the event loop while waiting."""
    lock = _lock()
    try:
        async with asyncio.timeout(_LOCK_TIMEOUT_S):
            while not _try(lock):  # noqa: ASYNC110 - a lock between processes wakes nobody
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise _stuck(lock) from None
    try:
        yield
    finally:
        lock.release()


def entries() -> list[Entry]:
    """Every serving whose supervisor lives, the oldest first. Hold the registry.

    Files of dead supervisors are removed; files that cannot be read are set aside with a warning.
    """
    found = []
    for path in sorted(registry_folder().glob("*.json")):
        entry = _read(path)
        if entry is None:
            continue
        if entry.supervisor.lives():
            found.append(entry)
        else:
            path.unlink(missing_ok=True)
            forget(entry.id)
    return sorted(found, key=lambda entry: entry.started_at)


def entry_of(serving: str) -> Entry | None:
    """The entry of one serving as it stands in its file, without looking at its supervisor."""
    return _read(registry_folder() / f"{serving}.json")


def write(entry: Entry) -> None:
    """Put an entry in its place, whole or not at all. Hold the registry. Raises: `ServeError`."""
    folder = registry_folder()
    text = json.dumps(entry.to_data(), indent=1)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".", delete=False
        ) as file:
            file.write(text)
        Path(file.name).replace(folder / f"{entry.id}.json")  # it is 0600 from birth
    except OSError as error:
        raise ServeError(f"cannot write the registry in {folder}: {error}") from error


def remove(serving: str) -> None:
    """Take a serving out. Hold the registry. Harmless when it is not there."""
    with suppress(OSError):
        (registry_folder() / f"{serving}.json").unlink(missing_ok=True)
    forget(serving)


def new_id(name: str) -> str:
    """An id that no serving has, from the model's name: short, and fit for a file's name."""
    word = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_NAME].strip("-") or "model"
    while True:
        serving = f"{word}-{secrets.token_hex(2)}"
        if not (registry_folder() / f"{serving}.json").exists():
            return serving


def _read(path: Path) -> Entry | None:
    try:
        entry = Entry.from_data(json.loads(path.read_text("utf-8")))
        if entry.id != path.stem:
            raise ValueError(f"it says that it is {entry.id!r}")
        return entry
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, WeftError) as error:
        aside = path.with_suffix(".unreadable")
        with suppress(OSError):
            path.replace(aside)
        warnings.warn(f"{path} cannot be read ({error}); it is {aside.name} now", stacklevel=3)
        return None


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _lock() -> FileLock:
    return FileLock(registry_folder() / ".lock", mode=0o600, thread_local=False)


def _stuck(lock: FileLock) -> ServeError:
    return ServeError(
        f"another program holds the registry of servers for more than {_LOCK_TIMEOUT_S:g} s",
        hint=f"look for a stopped weft process; the lock is {os.fspath(lock.lock_file)}",
    )
