"""Ends all that a tool's or a server's process has started, by a mark in their environment.

A process group does not hold a child that made a session of its own; its environment is inherited.
Linux only: elsewhere the group is all that can be reached. A program that empties the environment
of its children on purpose is not held either; the sandbox is for such programs.
"""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

VARIABLE: Final = "WEFT_PROCESS"
_PROCESSES: Final = Path("/proc")
_ROUNDS: Final = 10


def new_mark() -> str:
    """A value of `VARIABLE` that no other process has."""
    return secrets.token_hex(16)


def kill_group(pid: int, mark: str) -> None:
    """Kill the process group that `pid` leads, then whoever else carries `mark`."""
    _kill(-pid)
    for _ in range(_ROUNDS):  # what is killed may have started another just before
        found = _marked(mark)
        for other in found:
            _kill(other)
        if not found:
            return


def _marked(mark: str) -> list[int]:
    wanted = f"{VARIABLE}={mark}".encode()
    found = []
    for place in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (place / "environ").read_bytes().split(b"\0") and _lives(place):
                found.append(int(place.name))
    return found


def _lives(place: Path) -> bool:
    return (place / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
