"""What is killed or frozen while programs run, and how it is repaired where it is not by itself."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from evals.cluster.stores import terminate_session
from weft.agents.process_tree import VARIABLE, kill_group
from weft.cluster.nodes import ClusterNode, ClusterStarter

NODES: Final = 3
_FREEZE_S: Final = 8.0
_PROGRAMS: Final = "evals.cluster.programs"


class Victims:
    """Everything that may be killed: each method kills one, and repairs what does not by itself.

    `database`: where the programs have their journal; `keeps_state`: whether the cluster's control
    store has its state in Redis.
    """

    def __init__(
        self,
        starter: ClusterStarter,
        folder: Path,
        seed: int,
        database: str | None = None,
        *,
        keeps_state: bool = False,
    ) -> None:
        self._starter = starter
        self._folder = folder
        self._random = random.Random(seed)
        self._database = database
        self._keeps_state = keeps_state
        self._deck: list[Callable[[], bool]] = []
        self.frozen: list[tuple[float, int]] = []
        self.counts: Counter[str] = Counter()
        self.program: subprocess.Popen[bytes] | None = None

    def start_program(self) -> None:
        """Start weft, or start it again."""
        log = (self._folder / "weft.log").open("ab")
        with log:
            self.program = subprocess.Popen(
                [sys.executable, "-m", _PROGRAMS, str(self._folder)], stderr=log, stdout=log
            )

    def strike(self) -> None:
        """Kill or freeze one thing. Each kind comes as often as it is in a shuffled deck."""
        if not self._deck:
            control_store = self._gcs_redis if self._keeps_state else self._gcs
            self._deck = [
                *[self._worker] * 6,
                *[self._freeze] * 3,
                *[self._bridge] * 3,
                *[self._weft] * 2,
                self._raylet,
                control_store,
                *([] if self._database is None else [self._postgres] * 4),
            ]
            self._random.shuffle(self._deck)
        kind = self._deck.pop()
        if kind():
            self.counts[kind.__name__.removeprefix("_")] += 1
        else:  # there is none just now
            self._deck.insert(0, kind)

    def thaw(self, *, all_of_them: bool = False) -> None:
        """Let frozen processes go on, when their time has come."""
        now = time.monotonic()
        for until, pid in list(self.frozen):
            if all_of_them or now > until:
                self.frozen.remove((until, pid))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _workers(self) -> list[int]:
        found = [pid for pid, name in _processes() if b"ray::WorkerProcess" in name]
        return [pid for pid in found if any(_is_of(pid, node) for node in self._starter.nodes)]

    def _worker(self) -> bool:
        found = self._workers()
        return bool(found) and _kill(self._random.choice(found))

    def _freeze(self) -> bool:
        found = self._workers()
        if not found:
            return False
        pid = self._random.choice(found)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.frozen.append((time.monotonic() + _FREEZE_S, pid))
        return True

    def _bridge(self) -> bool:
        found = [pid for pid, name in _processes() if b"weft.cluster.bridge" in name]
        found = [pid for pid in found if self.program and _parent(pid) == self.program.pid]
        return bool(found) and _kill(found[0])

    def _weft(self) -> bool:
        if self.program is None or self.program.poll() is not None:
            return False
        self.program.kill()
        self.program.wait()
        self.start_program()
        return True

    def _raylet(self) -> bool:
        nodes = [node for node in self._starter.nodes[1:] if node.is_alive]
        if len(nodes) < NODES:
            return False
        node = self._random.choice(nodes)
        killed = self._kill_of(node, b"raylet/raylet")
        kill_group(node.pid, node.mark)
        self._starter.nodes.remove(node)
        self._starter.node()
        return killed

    def _gcs(self) -> bool:
        """Its state is gone, and with it the cluster: an operator starts another one there."""
        killed = self._kill_of(self._starter.nodes[0], b"gcs/gcs_server")
        for node in self._starter.nodes:
            kill_group(node.pid, node.mark)
        self._starter.nodes.clear()
        self._starter.head()
        for _ in range(NODES):
            self._starter.node()
        return killed

    def _gcs_redis(self) -> bool:
        """It finds its state in Redis when the head is started again; the nodes stay."""
        head = self._starter.nodes.pop(0)
        killed = self._kill_of(head, b"gcs/gcs_server")
        kill_group(head.pid, head.mark)
        # Ray would take the other nodes, which are on this machine here, for a head that runs.
        Path(self._starter.folder, "ray", "ray_current_cluster").unlink(missing_ok=True)
        self._starter.head()
        self._starter.nodes.insert(0, self._starter.nodes.pop())
        return killed

    def _postgres(self) -> bool:
        return self._database is not None and terminate_session(
            self._database, self._random.random()
        )

    @staticmethod
    def _kill_of(node: ClusterNode, name: bytes) -> bool:
        found = [pid for pid, line in _processes() if name in line and _is_of(pid, node)]
        return bool(found) and _kill(found[0])


def _processes() -> Iterator[tuple[int, bytes]]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(place.name), (place / "cmdline").read_bytes()


def _is_of(pid: int, node: ClusterNode) -> bool:
    with suppress(OSError):
        return f"{VARIABLE}={node.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[1])
    return 0


def _kill(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
