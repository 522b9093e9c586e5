"""The bridge's process: one for each cluster that this process uses, shared by its runs."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from weft.agents.process_tree import environment, kill_group, new_mark
from weft.cluster.bridge import FOLDER_PREFIX
from weft.cluster.frames import frames
from weft.cluster.host import error_of
from weft.cluster.settings import python_path
from weft.core.errors import ClusterError

START_S: Final = 60.0
LINGER_S: Final = 60.0
"""How long a bridge stays when no run uses it."""
_END_S: Final = 5.0
_SHOWN: Final = 600


class BridgeProcess:
    """A running bridge; `socket` is where clients connect. Raises, when made: `ClusterError`."""

    def __init__(self, command: list[str], settings: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX)  # mode 0700
        self.socket = str(Path(self._folder.name, "s"))
        self._mark = new_mark()
        log = Path(self._folder.name, "log")
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - an argument list of our own
                [sys.executable, "-P", *command[:2], self.socket, *command[2:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environment(self._mark), "PYTHONPATH": python_path(), **settings},
                start_new_session=True,
            )
        try:
            self._wait(log)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def _wait(self, log: Path) -> None:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_S)
        said = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
        for header, _ in frames(said):
            if header["kind"] == "error":
                raise error_of(header["error"])
            return
        why = "it gave no sign" if not ready else log.read_text("utf-8", "replace")[-_SHOWN:]
        raise ClusterError(
            f"the bridge to the cluster did not start: {why}".strip(),
            hint="its process ended before it was connected",
        )

    def close(self) -> None:
        """End the process and its children. Harmless when repeated."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if self._process.returncode is None:
            kill_group(self._process.pid, self._mark)
            self._process.wait()
        self._folder.cleanup()


class BridgeCache:
    """The bridges of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bridges: dict[tuple[Any, ...], BridgeProcess] = {}
        self._users: dict[tuple[Any, ...], int] = {}
        self._idle_since: dict[tuple[Any, ...], float] = {}

    def acquire(self, command: list[str], settings: Mapping[str, str]) -> BridgeProcess:
        """The bridge of that command, started unless it runs. `release` it. Blocks meanwhile.

        Raises: `ClusterError`.
        """
        key = (*command, *sorted(settings.items()))
        with self._lock:
            bridge = self._bridges.get(key)
            if bridge is not None and not bridge.is_alive:
                bridge.close()
                bridge = None
            if bridge is None:
                bridge = self._bridges[key] = BridgeProcess(command, settings)
                self._users[key] = 0
            self._users[key] += 1
            return bridge

    def running(self) -> set[int]:
        """The process ids of the bridges that run."""
        with self._lock:
            return {each.pid for each in self._bridges.values() if each.is_alive}

    def release(self, bridge: BridgeProcess) -> None:
        """The caller no longer uses `bridge`; without users it ends after `LINGER_S`."""
        with self._lock:
            key = next((key for key, each in self._bridges.items() if each is bridge), None)
            if key is None:
                return
            self._users[key] -= 1
            self._idle_since[key] = time.monotonic()
            if not self._users[key]:
                timer = threading.Timer(LINGER_S, self._expire, (key, bridge))
                timer.daemon = True
                timer.start()

    def _expire(self, key: tuple[Any, ...], bridge: BridgeProcess) -> None:
        with self._lock:
            idle = time.monotonic() - self._idle_since.get(key, 0.0) >= LINGER_S - 1.0
            if self._bridges.get(key) is bridge and not self._users[key] and idle:
                del self._bridges[key]
                bridge.close()

    def close(self) -> None:
        """End all bridges."""
        with self._lock:
            bridges = list(self._bridges.values())
            self._bridges.clear()
        for bridge in bridges:
            bridge.close()


BRIDGES: Final = BridgeCache()
atexit.register(BRIDGES.close)
