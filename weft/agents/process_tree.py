"""Kills all processes that a tool or server has started, by a mark in their environment.

A process group lacks children with a session of their own, but they inherit the environment. Linux
only: elsewhere only the group is killed. A program that clears the environment of its children
escapes; the sandbox is for such programs.
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
    """The environment of a child process: the necessary variables, `more`, and its mark."""
    names = (*_INHERITED, *more)
    return {**{name: os.environ[name] for name in names if name in os.environ}, VARIABLE: mark}


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 99` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def new_mark() -> str:
    """A unique value of `VARIABLE`."""
    return secrets.token_hex(16)


def kill_group(pid: int, mark: str) -> None:
    """Kill the process group of `pid`, then all other processes with `mark`."""
    _kill(-pid)
    for _ in range(_ROUNDS):  # a killed process may have just started another one
        found, unclear = _find_marked(mark)
        for other in found:
            _kill(other)
        if not found and not unclear:
            return
        time.sleep(_PAUSE_S)


def _find_marked(mark: str) -> tuple[list[int], bool]:
    """The processes with `mark`; and whether a process is starting, whose mark is not visible yet.

    A process that has just been started has an empty environment for a moment.
    """
    wanted, unclear = f"{VARIABLE}={mark}".encode(), False
    found = []
    for place in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            environ = (place / "environ").read_bytes()
            if not environ:
                unclear |= _is_starting(place)
            elif wanted in environ.split(b"\0") and _is_alive(place):
                found.append(int(place.name))
    return found, unclear


def _is_alive(place: Path) -> bool:
    return _stat(place)[0] not in (b"Z", b"X")


def _is_starting(place: Path) -> bool:
    state, parent = _stat(place)[:2]
    return state not in (b"Z", b"X") and parent not in (b"0", _KERNEL)


def _stat(place: Path) -> list[bytes]:
    return (place / "stat").read_bytes().rpartition(b")")[2].split()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
