"""Times systems on one scenario, interleaved, each in a process of its own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any

from evals.engine import peers
from evals.engine.rounds import end
from evals.engine.rows import Row
from evals.graphbit.scenarios import LATENCY_S, Scenario
from evals.graphbit.systems import SYSTEMS

_LIMIT_S = 60.0
"""A system whose process says nothing for so long is left out."""


class Skipped(Exception):
    """A system gives no result for a scenario; the message says why."""


class Worker:
    """One system with one scenario in its process. Raises `Skipped` where it gives no result."""

    def __init__(self, python: str, system: str, scenario: str, base_url: str, home: Path) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "evals.graphbit.worker", system, scenario, base_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(home),
        )
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def sample(self) -> Mapping[str, float]:
        """One run: seconds of wall and of CPU, and the most memory so far."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("run\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Skipped(f"it ended with code {self._process.wait()}") from error
        return self._read()

    def close(self) -> None:
        """End it."""
        end(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        timer = Timer(_LIMIT_S, end, [self._process])
        timer.start()
        try:
            lines = iter(self._process.stdout.readline, "")
            line = next((line for line in lines if line.startswith("{")), None)
        finally:
            timer.cancel()
        if line is None:
            raise Skipped(f"it ended with code {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Skipped(str(found["error"]))
        return found


def measure(
    scenario: Scenario, base_url: str, rounds: int, pythons: Mapping[str, str]
) -> list[Row]:
    """The rows of one scenario; `pythons`: the interpreter of each system, or why it has none."""
    samples: dict[str, list[Mapping[str, float]]] = {}
    found: list[Row] = []
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-")))
        workers: dict[str, Worker] = {}
        for system in SYSTEMS:
            try:
                if not Path(pythons[system]).exists():
                    raise Skipped(pythons[system])
                worker = Worker(pythons[system], system, scenario.name, base_url, home)
            except Skipped as why:
                found.append(Row(scenario.name, system, f"skipped: {why}", None, ""))
                continue
            stack.callback(worker.close)
            workers[system] = worker
        chance = random.Random(scenario.name)
        for _ in range(rounds):
            for system in chance.sample(list(workers), len(workers)):
                try:
                    samples.setdefault(system, []).append(workers[system].sample())
                except Skipped as why:
                    found.append(Row(scenario.name, system, f"skipped: {why}", None, ""))
                    del workers[system], samples[system]
    return found + [row for s, each in samples.items() for row in _rows(scenario, s, each)]


def _rows(scenario: Scenario, system: str, samples: Sequence[Mapping[str, float]]) -> list[Row]:
    wall_ms = median(each["wall_s"] for each in samples) * 1e3
    figures = [
        ("median_ms", wall_ms, "ms"),
        ("overhead_ms", wall_ms - scenario.rounds * LATENCY_S * 1e3, "ms"),
        ("cpu_ms", median(each["cpu_s"] for each in samples) * 1e3, "ms"),
        ("peak_mib", samples[-1]["peak_bytes"] / 2**20, "MiB"),
        ("rounds", len(samples), "rounds"),
    ]
    return [Row(scenario.name, system, metric, value, unit) for metric, value, unit in figures]


def interpreters() -> dict[str, str]:
    """The Python of each system; where it cannot be installed, the reason."""
    found = {}
    for name, system in SYSTEMS.items():
        try:
            found[name] = peers.interpreter(system.home)
        except peers.PeersUnavailable as why:
            print(why, file=sys.stderr, flush=True)
            found[name] = str(why)
    return found
