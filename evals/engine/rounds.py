"""Times systems on one case, interleaved, each in a process of its own. Computes no figure.

A round gives each system one sample: bare asyncio first and last, the others between in an order
drawn anew. A sample has a wall time and the CPU time of its process.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from threading import Event, Timer
from typing import Any, Protocol

from psutil import NoSuchProcess, Process

from evals.engine import peers
from evals.engine.systems import system_named
from evals.engine.worker import Ready, Sample

FLOOR = "asyncio"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure one case: about `seconds`, from `least` to `most` rounds.

    A system whose process says nothing for `limit_s` is left out.
    """

    seconds: float
    least: int
    most: int
    limit_s: float


class Skipped(Exception):
    """A system gives no result for a case; the message says why."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one case in milliseconds, by system. Places in the lists are rounds.

    `stored`: the bytes that one run adds, by system. `skipped`: why there is no result.
    """

    case: str
    ready: dict[str, Ready] = field(default_factory=dict)
    wall_ms: dict[str, list[float]] = field(default_factory=dict)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    stored: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def note(self, system: str, samples: Sequence[Sample]) -> None:
        """Add what a round has measured of a system."""
        self.wall_ms.setdefault(system, []).append(mean(each.wall_s for each in samples) * 1e3)
        self.cpu_ms.setdefault(system, []).append(mean(each.cpu_s for each in samples) * 1e3)

    def drop(self, system: str, reason: str) -> None:
        """Forget what was measured of a system that has failed."""
        for found in (self.ready, self.wall_ms, self.cpu_ms, self.stored):
            found.pop(system, None)
        self.skipped[system] = reason


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and what it has started: a server would keep its output open.

    It is stopped first, so that it starts nothing more while what it has started is looked for.
    """
    if process.poll() is not None:
        return
    with suppress(NoSuchProcess):
        parent = Process(process.pid)
        parent.suspend()
        for each in parent.children(recursive=True):
            with suppress(NoSuchProcess):
                each.kill()
    process.kill()
    process.wait()


class Worker:
    """One system with one case in its process. Raises `Skipped` where it gives no result."""

    def __init__(self, system: str, case: str, folder: Path, limit_s: float) -> None:
        self._limit_s = limit_s
        self._runs = 0
        self._process = subprocess.Popen(
            [_python(system), "-m", "evals.engine.worker", system, case, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(folder),
        )
        try:
            self.ready = Ready(**self._read())
            self.sample_s = self.ready.sample_s
            self._stores = system_named(system).stores
            self._before = self._bytes()
        except BaseException:
            self.close()
            raise

    def sample(self) -> Sample:
        """One sample."""
        self._runs += self.ready.loops + (self.ready.loops > 1)
        return Sample(**self._ask(self.ready.loops))

    def stored(self) -> float | None:
        """The bytes that a run has added; None where nothing is to be stored."""
        return (self._bytes() - self._before) / self._runs if self._stores else None

    def close(self) -> None:
        """End it, and what it has started."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end(self._process)
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _expire(self, late: Event) -> None:
        late.set()
        end(self._process)

    def _bytes(self) -> int:
        return int(self._ask("bytes")["bytes"]) if self._stores else 0

    def _ask(self, what: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{what}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Skipped(f"it ended with code {self._process.wait()}") from error
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = Event()
        timer = Timer(self._limit_s, self._expire, [late])
        timer.start()
        try:
            lines = iter(self._process.stdout.readline, "")
            line = next((line for line in lines if line.startswith("{")), None)
        finally:
            timer.cancel()
        if line is None:
            code = self._process.wait()
            late_s = f"no result within {self._limit_s:g} s"
            raise Skipped(late_s if late.is_set() else f"it ended with code {code}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Skipped(str(found["error"]))
        return found


class Sampled(Protocol):
    """What takes part in rounds; `sample_s` is about how long a sample takes."""

    sample_s: float

    def sample(self) -> Sample:
        """One sample. Raises: `Skipped`."""

    def close(self) -> None:
        """End it."""


def measure(case: str, systems: Sequence[str], pace: Pace) -> Timing:
    """Time `systems` on `case`, interleaved."""
    timing = Timing(case)
    with tempfile.TemporaryDirectory(prefix="weft-") as scratch, ExitStack() as open_:
        workers: dict[str, Worker] = {}
        for system in systems:
            folder = Path(scratch, system)
            folder.mkdir()
            try:
                worker = workers[system] = Worker(system, case, folder, pace.limit_s)
            except Skipped as reason:
                timing.drop(system, str(reason))
            else:
                open_.callback(worker.close)
                timing.ready[system] = worker.ready
        measure_together(timing, workers, pace)
        for system in timing.wall_ms:
            stored = workers[system].stored()
            if stored is not None:
                timing.stored[system] = stored
    return timing


def measure_together(timing: Timing, contestants: Mapping[str, Sampled], pace: Pace) -> None:
    """Add rounds of all `contestants` to `timing`; one that fails is dropped from there on."""
    draw = random.Random(1)
    left = dict(contestants)
    round_s = sum(contestant.sample_s for contestant in left.values())
    rounds = min(pace.most, max(pace.least, int(pace.seconds / max(round_s, 1e-3))))
    for number in range(rounds):
        samples: dict[str, list[Sample]] = {}
        for system in _order(list(left), draw):
            if system not in left:
                continue
            try:
                samples.setdefault(system, []).append(left[system].sample())
            except Skipped as reason:
                timing.drop(system, f"in round {number + 1}: {reason}")
                left.pop(system).close()
        for system in left:
            timing.note(system, samples[system])


def _order(systems: Sequence[str], draw: random.Random) -> list[str]:
    between = [system for system in systems if system != FLOOR]
    edge = [FLOOR] if FLOOR in systems else []
    return [*edge, *draw.sample(between, len(between)), *edge]


def _python(system: str) -> str:
    try:
        return peers.interpreter(system_named(system).home)
    except peers.PeersUnavailable as error:
        print(f"{system} cannot be measured: {error}", file=sys.stderr)
        raise Skipped(f"not installed: {error}") from error
