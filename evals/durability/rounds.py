"""Times systems on one case, interleaved, each in a process of its own. Computes no figure."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from evals.engine import peers
from evals.planning.effort import Skipped


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds by system, places are rounds; bytes that one more run takes; why not."""

    wall_ms: dict[str, list[float]] = field(default_factory=dict)
    run_bytes: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class Worker:
    """One system in its process."""

    def __init__(self, python: str, system: str, case: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "evals.durability.worker", system, case, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(),
        )
        try:
            found = self._read()
            if "error" in found:
                raise Skipped(str(found["error"]))
        except BaseException:
            self.close()
            raise

    def ask(self, what: str = "run") -> Mapping[str, float]:
        """One answer. Raises: `Skipped`."""
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.terminate()
        self._process.wait()

    def _read(self) -> Mapping[str, float]:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise Skipped(f"it ended with code {self._process.wait()}")
            if line.startswith("{"):
                found: Mapping[str, float] = json.loads(line)
                return found


def measure(case: str, systems: Sequence[str], rounds: int) -> Timing:
    """`rounds` runs of each of `systems` on `case`, in an order drawn anew for each round."""
    timing = Timing()
    try:
        python = str(peers.interpreter())
    except peers.PeersUnavailable as reason:
        print(f"the peers cannot be measured: {reason}", file=sys.stderr)
        python = sys.executable
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as open_:
        workers: dict[str, Worker] = {}
        for system in systems:
            folder = Path(scratch, system)
            folder.mkdir()
            try:
                workers[system] = Worker(python, system, case, folder)
            except Skipped as reason:
                timing.skipped[system] = str(reason)
            else:
                open_.callback(workers[system].close)
        before = {system: worker.ask("bytes")["bytes"] for system, worker in workers.items()}
        for _ in range(rounds):
            for system in draw.sample(list(workers), len(workers)):
                timing.wall_ms.setdefault(system, []).append(workers[system].ask()["ms"])
        for system, worker in workers.items():
            grown = worker.ask("bytes")["bytes"] - before[system]
            timing.run_bytes[system] = grown / rounds
    return timing
