"""The result of a sandboxed program, derived from the keeper's report."""

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
    """The result of one run.

    finished    exit code 0
    failed      any other exit code
    killed      ended by `signal`, of its own making
    timeout     longer than `wall_s` or `cpu_s`
    memory      more than `memory_bytes`
    output      printed more than `output_bytes`
    file_size   wrote a file of more than `file_bytes`
    denied      made a forbidden system call

    `why` explains it in words. `stdout` and `stderr` hold at most `output_bytes` each; bytes that
    are not UTF-8 are replaced. `seconds`: wall time; `cpu_s`: processor time of the program and of
    the processes it waited for (0 when it was ended from outside); `peak_bytes`: peak memory.
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
        """Whether the program ended by itself, with exit code 0."""
        return self.status == "finished"


_ENDS: Final[dict[int, tuple[Status, str]]] = {
    signal.SIGXCPU: ("timeout", "it used more than its {limits.cpu_s} s of processor time"),
    signal.SIGXFSZ: ("file_size", "it wrote a file of more than {limits.file_bytes:,} bytes"),
    signal.SIGSYS: ("denied", "it made a system call that no program may make"),
}


def verdict(report: KeeperReport, limits: SandboxLimits) -> SandboxResult:
    """The result of a program that has run."""
    code = report.result.get("code")
    stdout = report.stdout.decode("utf-8", "replace")
    stderr = report.stderr.decode("utf-8", "replace")
    status, why = _forced(report, limits) or _own(code, report, stderr, limits)
    return SandboxResult(
        status,
        why,
        stdout,
        stderr,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        seconds=report.result.get("seconds", 0.0),
        cpu_s=report.result.get("cpu_s", 0.0),
        peak_bytes=report.result.get("peak_bytes", 0),
    )


def _forced(report: KeeperReport, limits: SandboxLimits) -> tuple[Status, str] | None:
    """The limit that the program was ended for from outside, or None."""
    cause = report.result.get("cause")
    if report.flooded:
        return "output", f"it printed more than {limits.output_bytes:,} bytes"
    if cause == "time" or report.late:
        return "timeout", f"it took longer than {limits.wall_s:g} s"
    if cause == "memory":
        return "memory", f"it used more than {limits.memory_bytes:,} bytes of memory"
    return None


def _own(
    code: int | None, report: KeeperReport, stderr: str, limits: SandboxLimits
) -> tuple[Status, str]:
    """The status of a program that ended by itself."""
    if code is None:
        return "killed", "it was killed from outside"
    if code == 0:
        return "finished", ""
    if code > 0:
        last = stderr.rstrip().rpartition("\n")[2]
        if last.startswith("MemoryError"):
            return "memory", f"it wanted more than {limits.memory_bytes:,} bytes of memory"
        return "failed", last or f"it ended with exit code {code}"
    if code == -signal.SIGKILL and report.result.get("cpu_s", 0.0) >= limits.cpu_s:
        code = -signal.SIGXCPU  # the hard limit, for programs that ignore the soft one
    if -code in _ENDS:
        status, words = _ENDS[-code]
        return status, words.format(limits=limits)
    return "killed", f"it ended by {_named(-code)}"


def _named(number: int) -> str:
    names = {each.value: each.name for each in signal.Signals}
    return names.get(number, f"signal {number}")
