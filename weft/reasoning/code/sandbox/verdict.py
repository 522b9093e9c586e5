"""Which outcome a run had. Pure."""

from __future__ import annotations

import signal
from typing import Final

from weft.reasoning.code.sandbox.keeping import Kept
from weft.reasoning.code.sandbox.limits import Limits
from weft.reasoning.code.sandbox.outcome import Ran, Status

_ENDS: Final[dict[int, tuple[Status, str]]] = {
    signal.SIGXCPU: ("timeout", "it used more than its {limits.cpu_s} s of processor time"),
    signal.SIGXFSZ: ("file_size", "it wrote a file of more than {limits.file_bytes:,} bytes"),
    signal.SIGSYS: ("denied", "it made a system call that no program may make"),
}


def verdict(kept: Kept, limits: Limits) -> Ran:
    """The outcome of a program that has run."""
    code = kept.said.get("code")
    printed = kept.printed.decode("utf-8", "replace")
    complained = kept.complained.decode("utf-8", "replace")
    status, why = _forced(kept, limits) or _own(code, kept, complained, limits)
    return Ran(
        status,
        why,
        printed,
        complained,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        seconds=kept.said.get("seconds", 0.0),
        cpu_s=kept.said.get("cpu_s", 0.0),
        peak_bytes=kept.said.get("peak_bytes", 0),
    )


def _forced(kept: Kept, limits: Limits) -> tuple[Status, str] | None:
    """What it was ended for from outside."""
    cause = kept.said.get("cause")
    if kept.flooded:
        return "output", f"it printed more than {limits.output_bytes:,} bytes"
    if cause == "time" or kept.late:
        return "timeout", f"it took longer than {limits.wall_s:g} s"
    if cause == "memory":
        return "memory", f"it used more than {limits.memory_bytes:,} bytes of memory"
    return None


def _own(code: int | None, kept: Kept, complained: str, limits: Limits) -> tuple[Status, str]:
    """How it ended by itself."""
    if code is None:
        return "killed", "it was killed from outside"
    if code == 0:
        return "finished", ""
    if code > 0:
        last = complained.rstrip().rpartition("\n")[2]
        if last.startswith("MemoryError"):
            return "memory", f"it wanted more than {limits.memory_bytes:,} bytes of memory"
        return "failed", last or f"it ended with exit code {code}"
    if code == -signal.SIGKILL and kept.said.get("cpu_s", 0.0) >= limits.cpu_s:
        code = -signal.SIGXCPU  # the hard limit, for those who do not heed the soft one
    if -code in _ENDS:
        status, words = _ENDS[-code]
        return status, words.format(limits=limits)
    return "killed", f"it ended by {_named(-code)}"


def _named(number: int) -> str:
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")
