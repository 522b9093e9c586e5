"""The registry of servings: one JSON file each, shared by all programs of a user."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from filelock import FileLock, Timeout

from weft.core.errors import ServeError, WeftError
from weft.serving.vllm.launch.spec import ServeSpec, from_form, to_form
from weft.serving.vllm.supervise.processes import Identity
from weft.serving.vllm.supervise.state_folders import forget, registry_folder

Status = Literal["starting", "ready", "degraded", "stopping"]
ReplicaStatus = Literal["starting", "ready", "restarting", "stopped", "failed"]
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ReplicaEntry:
    """One replica. `url` is the base URL of its OpenAI API, `engine` its process id.

    The address survives restarts. It is "" for ranks of another machine's server.
    """

    number: int
    url: str
    log: str
    status: ReplicaStatus = "starting"
    restarts: int = 0
    engine: int | None = None


@dataclass(frozen=True, slots=True)
class ServingEntry:
    """One serving. `started_at` in seconds since 1970, `stage` for display.

    `keep_alive_s`: it ends this long after the last lease; None: only when stopped. `drain_s`: how
    long requests may take to finish when it ends.
    """

    id: str
    spec: ServeSpec
    supervisor: Identity
    status: Status = "starting"
    stage: str = "starting"
    replicas: tuple[ReplicaEntry, ...] = ()
    started_at: float = field(default_factory=time.time)
    drain_s: float = 30.0
    start_timeout_s: float = 1800.0
    keep_alive_s: float | None = None

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.spec.name

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs of replicas that have one, except stopped and failed ones."""
        served = (r for r in self.replicas if r.status not in ("failed", "stopped"))
        return tuple(replica.url for replica in served if replica.url)

    @property
    def restarts(self) -> int:
        """Restarts of all replicas together."""
        return sum(replica.restarts for replica in self.replicas)

    def with_replica(self, changed: ReplicaEntry) -> ServingEntry:
        """The entry with one replica replaced or added, and the resulting status."""
        replicas = {r.number: r for r in self.replicas} | {changed.number: changed}
        ordered = tuple(replicas[number] for number in sorted(replicas))
        return replace(self, replicas=ordered, status=self._status(ordered))

    def _status(self, replicas: tuple[ReplicaEntry, ...]) -> Status:
        if self.status == "stopping":
            return "stopping"
        ready = sum(replica.status == "ready" for replica in replicas)
        if ready == self.spec.replicas:
            return "ready"
        return "starting" if self.status == "starting" else "degraded"

    def to_data(self) -> dict[str, Any]:
        """The entry as plain data for JSON."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["spec"] = to_form(self.spec)
        data["supervisor"] = asdict(self.supervisor)
        data["replicas"] = [asdict(replica) for replica in self.replicas]
        return {"format": _FORMAT, **data}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ServingEntry:
        """The inverse of `to_data`.

        Raises: `ValueError`, `TypeError`, `KeyError`, `AttributeError` or `SpecError` for invalid
        data.
        """
        given = dict(data)
        if given.pop("format") != _FORMAT or given["status"] not in get_args(Status):
            raise ValueError("not an entry that this version of weft writes")
        given["started_at"] = float(data["started_at"])
        given["spec"] = from_form(data["spec"])
        given["supervisor"] = Identity(**data["supervisor"])
        given["replicas"] = tuple(ReplicaEntry(**replica) for replica in data["replicas"])
        return cls(**given)


_LOCK_TIMEOUT_S = 20.0
_POLL_S = 0.02
_LONGEST_NAME = 24


@contextmanager
def locked() -> Iterator[None]:
    """Lock the registry against other programs, for a short time. Raises: `ServeError`."""
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
    """As `locked`, but waits without blocking the event loop."""
    lock = _lock()
    try:
        async with asyncio.timeout(_LOCK_TIMEOUT_S):
            while not _try(lock):  # noqa: ASYNC110 - a lock between processes wakes no task
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise _stuck(lock) from None
    try:
        yield
    finally:
        lock.release()


def entries() -> list[ServingEntry]:
    """Every serving whose supervisor lives, the oldest first. The caller locks the registry.

    Removes files of dead supervisors, and renames unreadable files, with a warning.
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


def entry_of(serving: str) -> ServingEntry | None:
    """The entry in the file of one serving, whether its supervisor lives or not."""
    return _read(registry_folder() / f"{serving}.json")


def write(entry: ServingEntry) -> None:
    """Write an entry atomically. The caller locks the registry. Raises: `ServeError`."""
    folder = registry_folder()
    text = json.dumps(entry.to_data(), indent=1)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".", delete=False
        ) as file:
            file.write(text)
        Path(file.name).replace(folder / f"{entry.id}.json")  # temporary files are created as 0600
    except OSError as error:
        raise ServeError(f"cannot write the registry in {folder}: {error}") from error


def remove(serving: str) -> None:
    """Remove a serving, if it is registered. The caller locks the registry."""
    with suppress(OSError):
        (registry_folder() / f"{serving}.json").unlink(missing_ok=True)
    forget(serving)


def new_id(name: str) -> str:
    """An unused id made from the model's name: short, and valid as a file name."""
    word = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_NAME].strip("-") or "model"
    while True:
        serving = f"{word}-{secrets.token_hex(2)}"
        if not (registry_folder() / f"{serving}.json").exists():
            return serving


def _read(path: Path) -> ServingEntry | None:
    try:
        entry = ServingEntry.from_data(json.loads(path.read_text("utf-8")))
        if entry.id != path.stem:
            raise ValueError(f"it says that it is {entry.id!r}")
        return entry
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, WeftError) as error:
        renamed = path.with_suffix(".unreadable")
        with suppress(OSError):
            path.replace(renamed)
        warnings.warn(f"{path} cannot be read ({error}); it is {renamed.name} now", stacklevel=3)
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
