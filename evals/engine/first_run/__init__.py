"""A chain of 100 in a fresh process, written in a file of its own: import, build, run it once.

The programs take a number, so that each run is another, and keep what they keep in the folder that
they run in. Beside it stands what a command line costs before it does anything.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from shutil import which
from time import perf_counter
from typing import Final

from evals.engine import peers
from evals.engine.cases import chain
from evals.engine.rounds import Pace, Skipped, Timing, end, measure_together
from evals.engine.systems import Home
from evals.engine.systems.on_weft_yaml import write_workflow
from evals.engine.worker import Sample

Command = Callable[[int], Sequence[str]]

FIRST_RUN: Final = "first_run_100"
VERSION: Final = "version"
_PROGRAMS: Final = Path(__file__).parent
_HOMES: Final[dict[str, Home]] = {
    "asyncio": "weft",
    "weft_flow": "weft",
    "weft_flow_none": "weft",
    "weft_yaml": "weft",
    "weft_cli": "weft",
    "langgraph": "peers",
    "langgraph_sqlite": "peers",
    "pydantic_graph": "peers",
    "hamilton": "peers",
    "dbos": "peers",
    "prefect": "prefect",
}


class FreshProcess:
    """A command that is carried out from start to end for each sample."""

    def __init__(self, command: Command, folder: Path, limit_s: float) -> None:
        self._command = command
        self._folder = folder
        self._limit_s = limit_s
        self._numbers = count(1)
        self.sample()  # compiles modules, makes databases
        self.sample_s = self.sample().wall_s

    def sample(self) -> Sample:
        """The time of a process, and the CPU time of it and of those that it waited for."""
        command = self._command(next(self._numbers))
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env=peers.environment(self._folder),
        )
        try:
            _, errors = process.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired as error:
            raise Skipped(f"no result within {self._limit_s:g} s") from error
        finally:
            end(process)
        took, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            last = (errors.strip().splitlines() or ["no message"])[-1]
            raise Skipped(f"exit code {process.returncode}: {last[:200]}")
        cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Sample(took, cpu_s)

    def close(self) -> None:
        """Nothing goes on between samples."""


def first_runs(pace: Pace) -> Timing:
    """The first run of every system."""
    return _measure(FIRST_RUN, {name: _program(name) for name in _HOMES}, pace)


def version(pace: Pace) -> Timing:
    """`weft --version`, beside what its command line library takes to import."""
    commands: dict[str, Callable[[], Command]] = {
        "python": lambda: lambda _: [sys.executable, "-c", ""],
        "import_typer": lambda: lambda _: [sys.executable, "-c", "import typer"],
        "weft_cli": lambda: lambda _: [_weft(), "--version"],
    }
    return _measure(VERSION, commands, pace)


def _measure(case: str, commands: Mapping[str, Callable[[], Command]], pace: Pace) -> Timing:
    timing = Timing(case)
    with tempfile.TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as scratch:
        processes: dict[str, FreshProcess] = {}
        for name, command in commands.items():
            folder = Path(scratch, name)
            folder.mkdir()
            write_workflow(chain("chain_100", 100), folder, _PROGRAMS / "tools.py")
            try:
                processes[name] = FreshProcess(command(), folder, pace.limit_s)
            except Skipped as reason:
                timing.drop(name, str(reason))
        measure_together(timing, processes, pace)
    return timing


def _program(name: str) -> Callable[[], Command]:
    def command() -> Command:
        if name == "weft_cli":
            return lambda n: [_weft(), "run", "chain_100.yaml", "-i", f"first={n}", "--json"]
        try:
            python = peers.interpreter(_HOMES[name])
        except peers.PeersUnavailable as error:
            raise Skipped(f"not installed: {error}") from error
        return lambda n: [python, str(_PROGRAMS / f"{name}_chain.py"), str(n)]

    return command


def _weft() -> str:
    found = which("weft", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        raise Skipped("there is no command `weft`")
    return found
