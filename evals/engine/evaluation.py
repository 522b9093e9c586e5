"""The order of the evaluation and its child processes; computes no figure itself."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from evals.engine import peers
from evals.engine.cases import CASES
from evals.engine.growth import Growth
from evals.engine.rounds import Pace, Timing
from evals.engine.rows import Row, growth_rows, memory_rows, timing_rows
from evals.engine.systems import PEERS, SYSTEMS
from weft import __version__


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to repeat; a system without a result for a case within `limit_s` is skipped."""

    pace: Pace
    limit_s: float


FULL = Effort(Pace(seconds=60.0, least=10, most=200), limit_s=90.0)
QUICK = Effort(Pace(seconds=8.0, least=3, most=40), limit_s=25.0)


class Skipped(Exception):
    """A system gives no result for a case; the message says why."""


class Evaluation:
    """One evaluation. `run` fills `rows`."""

    def __init__(self, effort: Effort) -> None:
        self.rows: list[Row] = []
        self._effort = effort
        self._python = sys.executable
        self._able: dict[str, list[str]] = {case: [] for case in CASES}

    def run(self) -> None:
        """Find out who can do what and in how much memory; then time all of them together."""
        no_peers = self._install_peers()
        for case in CASES:
            for system in SYSTEMS:
                if no_peers and system in PEERS:
                    self._skip(case, system, no_peers)
                else:
                    self._probe(case, system)
        for timing in self._timings():
            self.rows += timing_rows(timing)
        self._grow()

    def _install_peers(self) -> str:
        """Use the peers' Python for everything. Returns why that is impossible, or nothing."""
        _say("the peers' environment")
        try:
            self._python = str(peers.interpreter())
        except peers.PeersUnavailable as error:
            return f"not installed: {error}"
        return ""

    def _probe(self, case: str, system: str) -> None:
        _say(f"memory of {case} on {system}")
        try:
            found = self._child("probe", system, case, limit_s=self._effort.limit_s)
        except Skipped as reason:
            self._skip(case, system, str(reason))
            return
        self._able[case].append(system)
        self.rows += memory_rows(case, system, found["peak_bytes"], found["added_bytes"])

    def _grow(self) -> None:
        _say("weft's memory for each node")
        try:
            self.rows += growth_rows(Growth(**self._child("growth", limit_s=300.0)))
        except Skipped as reason:
            self._skip("layered_10000", "weft", f"bytes per node: {reason}")

    def _skip(self, case: str, system: str, reason: str) -> None:
        self.rows.append(Row(case, system, f"skipped: {reason}", None, ""))

    def _child(self, module: str, *arguments: str, limit_s: float) -> dict[str, int]:
        """What a child process found out. Raises: `Skipped`."""
        command = [self._python, "-m", f"evals.engine.{module}", *arguments]
        try:
            ended = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                timeout=limit_s,
                cwd=peers.ROOT,
                env=peers.environment(),
            )
        except subprocess.TimeoutExpired:
            raise Skipped(f"no result within {limit_s:g} s") from None
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            raise Skipped(f"exit code {ended.returncode}: {last}")
        found: dict[str, int] = json.loads(ended.stdout)
        if "error" in found:
            raise Skipped(str(found["error"]))
        return found

    def _timings(self) -> Iterator[Timing]:
        """One timing for each case, all from one process."""
        command = [self._python, "-m", "evals.engine.rounds"]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=peers.ROOT,
            env=peers.environment(),
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for case, systems in self._able.items():
                step = {"case": case, "systems": systems, **asdict(self._effort.pace)}
                process.stdin.write(json.dumps(step) + "\n")
            process.stdin.close()
            for case in self._able:
                _say(f"rounds of {case}: {', '.join(self._able[case])}")
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the rounds ended in {case} with code {process.wait()}")
                yield Timing(**json.loads(line))


def surroundings() -> Mapping[str, str]:
    """When, on what and with which versions the figures were taken."""
    pins = dict(line.split("==") for line in peers.PINS.read_text().splitlines() if "==" in line)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "weft": __version__,
        "langgraph": pins["langgraph"],
        "pydantic_graph": pins["pydantic-graph"],
        "hamilton": pins["apache-hamilton"],
    }


def _say(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr, flush=True)
