"""What came of running a program, and which outcome a run had."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final, Literal

from weft.reasoning.code.sandbox.keeper_process import KeeperReport
from weft.reasoning.code.sandbox.request import SandboxLimits

Status = Literal[
    "finished", "failed", "killed", "timeout", "memory", "output", "file_size", "denied"
]


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """The end of one run.

    finished    exit code 0
    failed      any other exit code
    killed      it ended by `signal`, of its own making
    timeout     it took longer than `wall_s` or `cpu_s`
    memory      it needed more than `memory_bytes`
    output      it printed more than `output_bytes`
    file_size   it wrote a file of more than `file_bytes` and was ended for it
    denied      it made a system call that no program may make

    `why` says it in words. `stdout` and `stderr` are what was printed until then, at most
    `output_bytes` of each, bytes that are no UTF-8 replaced. `seconds` from start to end, `cpu_s`
    processor time of the program and of those it waited for (0 when it was ended from outside),
    `peak_bytes` the most memory seen.
    """

    status: Status
    why: str
    stdout: str
    stderr: str
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.status == "finished"


_ENDS: Final[dict[int, tuple[Status, str]]] = {
    signal.SIGXCPU: ("timeout", "it used more than its {limits.cpu_s} s of processor time"),
    signal.SIGXFSZ: ("file_size", "it wrote a file of more than {limits.file_bytes:,} bytes"),
    signal.SIGSYS: ("denied", "it made a system call that no program may make"),
}


def verdict(kept: KeeperReport, limits: SandboxLimits) -> SandboxResult:
    """The outcome of a program that has run."""
    code = kept.said.get("code")
    printed = kept.printed.decode("utf-8", "replace")
    complained = kept.complained.decode("utf-8", "replace")
    status, why = _forced(kept, limits) or _own(code, kept, complained, limits)
    return SandboxResult(
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


def _forced(kept: KeeperReport, limits: SandboxLimits) -> tuple[Status, str] | None:
    """What it was ended for from outside."""
    cause = kept.said.get("cause")
    if kept.flooded:
        return "output", f"it printed more than {limits.output_bytes:,} bytes"
    if cause == "time" or kept.late:
        return "timeout", f"it took longer than {limits.wall_s:g} s"
    if cause == "memory":
        return "memory", f"it used more than {limits.memory_bytes:,} bytes of memory"
    return None


def _own(
    code: int | None, kept: KeeperReport, complained: str, limits: SandboxLimits
) -> tuple[Status, str]:
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
