"""Kills everything that the process of a tool or server has started, by a mark in its environment.

A process group does not hold a child that made a session of its own; its environment is inherited.
Linux only: elsewhere only the group is reached. A program that empties the environment of its
children on purpose escapes; the sandbox is for such programs.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

VARIABLE: Final = "WEFT_PROCESS"
_PROCESSES: Final = Path("/proc")
_ROUNDS: Final = 10
_PAUSE_S: Final = 0.001
_KERNEL: Final = b"2"  # the parent of the kernel's own threads


_INHERITED: Final = ("PATH", "HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


def environment(mark: str, *more: str) -> dict[str, str]:
    """What a process gets of our environment: what it needs, `more`, and its mark; no secrets."""
    kept = (*_INHERITED, *more)
    return {**{name: os.environ[name] for name in kept if name in os.environ}, VARIABLE: mark}


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 99` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def new_mark() -> str:
    """A value of `VARIABLE` that no other process has."""
    return secrets.token_hex(16)


def kill_group(pid: int, mark: str) -> None:
    """Kill the process group that `pid` leads, then whoever else carries `mark`."""
    _kill(-pid)
    for _ in range(_ROUNDS):  # what is killed may have started another just before
        found, unclear = _marked(mark)
        for other in found:
            _kill(other)
        if not found and not unclear:
            return
        time.sleep(_PAUSE_S)


def _marked(mark: str) -> tuple[list[int], bool]:
    """The processes that carry `mark`; and whether one is being started, whose mark is not there.

    A process that has just been started shows no environment for a moment.
    """
    wanted, unclear = f"{VARIABLE}={mark}".encode(), False
    found = []
    for place in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            shown = (place / "environ").read_bytes()
            if not shown:
                unclear |= _begins(place)
            elif wanted in shown.split(b"\0") and _lives(place):
                found.append(int(place.name))
    return found, unclear


def _lives(place: Path) -> bool:
    return _stat(place)[0] not in (b"Z", b"X")


def _begins(place: Path) -> bool:
    state, parent = _stat(place)[:2]
    return state not in (b"Z", b"X") and parent not in (b"0", _KERNEL)


def _stat(place: Path) -> list[bytes]:
    return (place / "stat").read_bytes().rpartition(b")")[2].split()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
