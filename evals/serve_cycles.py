"""`python -m evals.serve_cycles [--cycles 50] [--quick] [--seed 0] [--json FILE]`.

Starts `weft serve` again and again, asks it something, lets somebody die (weft by SIGTERM or by
SIGKILL, the server or a worker by SIGKILL), and counts what is left: processes, busy ports, shared
memory. Where a server or a worker died, the replica has to come back by itself first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

import psutil

from evals.engine.rows import Row
from evals.results import environment, write_results
from weft.serving.vllm.serve import servings
from weft.serving.vllm.supervise.registry import ServingEntry

WEFT = [sys.executable, "-m", "weft"]
MODEL = "smollm2-135m-instruct"
SYSTEM = "weft serve"
VICTIMS = ("weft by SIGTERM", "weft by SIGKILL", "server by SIGKILL", "worker by SIGKILL")
OPTIONS = ("--kv-cache", "256MiB", "--max-context", "512")
START_S = 240.0
END_S = 60.0
_SHARED = re.compile(r"/dev/shm/\S+")
T = TypeVar("T")


@dataclass(slots=True)
class Cycle:
    """What one cycle measured; the counts are of what was left after at most `END_S`."""

    victim: str
    start_s: float = 0.0
    recover_s: float | None = None
    end_s: float = 0.0
    processes: int = 0
    ports: int = 0
    shared: int = 0
    answers: int = 0
    log: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """All that belongs to a serving at one moment."""

    processes: Sequence[psutil.Process]
    port: int
    shared: frozenset[str]

    def left(self) -> tuple[int, int, int]:
        """How many processes, ports and pieces of shared memory are still there."""
        alive = sum(_alive(process) for process in self.processes)
        return alive, int(_busy(self.port)), sum(Path(path).exists() for path in self.shared)


def cycle(victim: str, model: str = MODEL, options: Sequence[str] = OPTIONS) -> Cycle:
    """Start, ask, let `victim` die, ask again if it comes back, end, count."""
    result = Cycle(victim)
    with serving(model, options) as weft:
        began = time.monotonic()
        entry = until(ready, START_S, weft)
        result.start_s = time.monotonic() - began
        result.answers += ask(entry)
        found = survey(weft, entry)
        restarted = not victim.startswith("weft")
        if restarted:
            began = time.monotonic()
            kill(victim, weft, entry)
            entry = until(lambda: ready(restarts=1), START_S, weft)
            result.recover_s = time.monotonic() - began
            left = found.left()
            result.processes += left[0] - 1  # weft itself
            result.answers += ask(entry)
            found = survey(weft, entry)
        began = time.monotonic()
        if restarted:
            command("stop", "--all")
        else:
            kill(victim, weft, entry)
        with suppress(TimeoutError):
            until(lambda: not any(found.left()[:2]), END_S)
            until(lambda: not found.left()[2], 3.0)
        result.end_s = time.monotonic() - began
        left = found.left()
        result.processes += left[0]
        result.ports += left[1]
        result.shared += left[2]
        assert json.loads(command("ps", "--json")) == []
    return result


@contextmanager
def serving(model: str, options: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """`weft serve` as a process, its state in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="weft-cycles-") as folder:
        os.environ["WEFT_STATE_DIR"] = folder
        with subprocess.Popen(
            [*WEFT, "serve", model, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as weft:
            try:
                yield weft
            finally:
                weft.terminate()
                with suppress(subprocess.TimeoutExpired):
                    weft.communicate(timeout=60)
                weft.kill()


def command(*words: str) -> str:
    """What a weft command prints."""
    ran = subprocess.run([*WEFT, *words], capture_output=True, text=True, check=True)
    return ran.stdout


def ready(restarts: int = 0) -> ServingEntry | None:
    """The serving, once it is ready after so many restarts."""
    fits = [e for e in servings() if e.status == "ready" and e.restarts == restarts]
    return fits[0] if fits else None


def ask(entry: ServingEntry) -> int:
    """One request. Raises: `OSError` unless it is answered with text. Returns 1."""
    body = {
        "model": entry.name,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 8,
        "temperature": 0,
    }
    request = urllib.request.Request(
        f"{entry.urls[0]}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["choices"][0]["message"]["content"]
    return 1


def survey(weft: subprocess.Popen[str], entry: ServingEntry) -> Found:
    """The processes below weft, the port, and the shared memory that they have mapped."""
    processes = [psutil.Process(weft.pid), *psutil.Process(weft.pid).children(recursive=True)]
    shared: set[str] = set()
    for process in processes:
        with suppress(OSError):
            shared.update(_SHARED.findall(Path(f"/proc/{process.pid}/maps").read_text()))
    port = int(entry.urls[0].removesuffix("/v1").rpartition(":")[2])
    return Found(processes, port, frozenset(shared))


def kill(victim: str, weft: subprocess.Popen[str], entry: ServingEntry) -> None:
    """Send the signal that `victim` names."""
    who, _, number = victim.partition(" by ")
    server = entry.replicas[0].engine
    assert server is not None
    pid = {"weft": weft.pid, "server": server}.get(who) or worker(weft, server)
    os.kill(pid, signal.Signals[number])


def worker(weft: subprocess.Popen[str], server: int) -> int:
    """The process at the bottom of the tree, which computes."""
    below = [
        process.pid
        for process in psutil.Process(weft.pid).children(recursive=True)
        if not any(name in _words(process) for name in ("guard.py", "resource_tracker"))
    ]
    below.remove(server)
    return below[-1]


def until(found: Callable[[], T], within_s: float, weft: subprocess.Popen[str] | None = None) -> T:
    """Poll until `found()` is true. Raises: `TimeoutError`; `RuntimeError` when weft ended."""
    deadline = time.monotonic() + within_s
    while not (value := found()):
        if weft is not None and weft.poll() is not None:
            assert weft.stderr is not None
            raise RuntimeError(f"weft serve ended: {weft.stderr.read()}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:g} s")
        time.sleep(0.1)
    return value


def rows(cycles: Sequence[Cycle]) -> list[Row]:
    """Counts and medians over all cycles, and over those of each victim."""
    found = _rows("all", cycles)
    for victim in VICTIMS:
        if some := [c for c in cycles if c.victim == victim]:
            found += _rows(victim, some)
    return found


def _rows(case: str, cycles: Sequence[Cycle]) -> list[Row]:
    recovered = [c.recover_s for c in cycles if c.recover_s is not None]
    values: list[tuple[str, float, str]] = [
        ("cycles", len(cycles), "cycles"),
        ("answers", sum(c.answers for c in cycles), "requests"),
        ("leftover_processes", sum(c.processes for c in cycles), "processes"),
        ("busy_ports", sum(c.ports for c in cycles), "ports"),
        ("leftover_shared_memory", sum(c.shared for c in cycles), "files"),
        ("median_start_s", median(c.start_s for c in cycles), "s"),
        ("median_end_s", median(c.end_s for c in cycles), "s"),
        ("longest_end_s", max(c.end_s for c in cycles), "s"),
    ]
    if recovered:
        values.append(("median_recover_s", median(recovered), "s"))
    return [Row(f"serve cycles: {case}", SYSTEM, *value) for value in values]


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _words(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _busy(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return True
    return False


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="4 cycles, one of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    dice = random.Random(given.seed)
    number = len(VICTIMS) if given.quick else given.cycles
    victims = [VICTIMS[n % len(VICTIMS)] for n in range(number)]
    dice.shuffle(victims)
    cycles = []
    for n, victim in enumerate(victims, 1):
        done = cycle(victim)
        cycles.append(done)
        left = f"{done.processes} processes, {done.ports} ports, {done.shared} shared left"
        took = f"start {done.start_s:.1f} s, end {done.end_s:.1f} s"
        print(f"{n:3}/{number}  {victim:<18}  {took}  {left}", flush=True)
    found = rows(cycles)
    for row in found:
        print(f"{row.case:<34}  {row.metric:<24}  {row.value:10.2f} {row.unit}")
    if given.json:
        write_results(given.json, found, environment(("vllm",)))


if __name__ == "__main__":
    main()
