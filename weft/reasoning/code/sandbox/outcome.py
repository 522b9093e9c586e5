"""What came of running a program. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "finished", "failed", "killed", "timeout", "memory", "output", "file_size", "denied"
]


@dataclass(frozen=True, slots=True)
class Ran:
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
