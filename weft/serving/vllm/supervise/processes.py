"""Identifies weft's processes by a mark in their environment, and whether they live.

A mark names the supervisor whose death makes a process a leftover.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

MARK = "WEFT_SERVING"
_GUARD = "guard.py"
_TRACKER = "multiprocessing.resource_tracker"
_TIDY_S = 10.0
_LINUX: Final = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Identity:
    """One process for good: its number and its start time, as numbers are reused."""

    pid: int
    born: str

    @classmethod
    def own(cls) -> Identity:
        """This process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The process that has this number now; `born` is empty if there is none."""
        return cls(pid, _born(pid) or "")

    def lives(self) -> bool:
        """Whether this process still exists and is not a zombie."""
        return bool(self.born) and _born(self.pid) == self.born


@dataclass(frozen=True, slots=True)
class Mark:
    """Environment variable of all processes of a serving."""

    serving: str
    supervisor: Identity

    def text(self) -> str:
        """The value of the variable `MARK`."""
        return f"{self.serving} {self.supervisor.pid} {self.supervisor.born}"

    @classmethod
    def parse(cls, text: str) -> Mark | None:
        """The mark in a variable's value; None for anything else."""
        parts = text.split(" ")
        if len(parts) != 3 or not parts[1].isdecimal():
            return None
        return cls(parts[0], Identity(int(parts[1]), parts[2]))


def marked() -> Iterator[tuple[psutil.Process, Mark]]:
    """Every marked process of this user in this process namespace."""
    namespace = _namespace("self")
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real != os.getuid() or process.pid == os.getpid():
                continue
            mark = Mark.parse(process.environ().get(MARK, ""))
            if mark is not None and _namespace(str(process.pid)) == namespace:
                yield process, mark


def end_leftovers() -> int:
    """End the processes whose supervisor died; returns their number.

    Skips those whose guard is alive, as it is ending them already.
    """
    left = [(process, mark) for process, mark in marked() if not mark.supervisor.lives()]
    guarded = {mark for process, mark in left if _runs(process, _GUARD)}
    return end([process for process, mark in left if mark not in guarded])


def end_marked(serving: str) -> int:
    """End every process of one serving, including guards; returns their number."""
    return end([process for process, mark in marked() if mark.serving == serving])


def end(processes: Iterable[psutil.Process]) -> int:
    """Kill processes and wait for their end. Resource trackers first get time to end themselves."""
    all_of_them = list(processes)
    trackers = [process for process in all_of_them if _runs(process, _TRACKER)]
    _kill(process for process in all_of_them if process not in trackers)
    _, late = psutil.wait_procs(trackers, timeout=_TIDY_S)
    _kill(late)
    psutil.wait_procs(all_of_them, timeout=_TIDY_S)
    return len(all_of_them)


def gone(serving: str, within_s: float) -> bool:
    """Wait until no process has the mark of `serving`; False if one still has."""
    deadline = time.monotonic() + within_s
    while any(mark.serving == serving for _, mark in marked()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _runs(process: psutil.Process, program: str) -> bool:
    try:
        return any(program in word for word in process.cmdline())
    except psutil.Error:
        return False


def _namespace(pid: str) -> str:
    """The process namespace: the numbers of a container mean nothing outside of it."""
    return str(Path(f"/proc/{pid}/ns/pid").readlink()) if _LINUX else ""


def _born(pid: int) -> str | None:
    """When a living process was born; does not change when the wall clock is set."""
    if _LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else f"{fields[19].decode()}@{_boot()[:8]}"
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except psutil.Error:
        return None


def _boot() -> str:
    """Id of the current boot: process numbers and ticks start anew after each."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    return ""
