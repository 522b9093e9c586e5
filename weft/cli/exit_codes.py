"""What the process's exit status says. The numbers are part of the command line's interface."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from weft.core.errors import BuildError, SpecError, WeftError


class ExitCode(IntEnum):
    """The documented exit statuses."""

    SUCCEEDED = 0
    FAILED = 1
    INVALID = 2
    PARTIAL = 3
    UNANSWERED = 4
    SUSPENDED = 5
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.SUCCEEDED: "succeeded",
    ExitCode.FAILED: "failed",
    ExitCode.INVALID: "wrong usage, or an invalid workflow or input",
    ExitCode.PARTIAL: "partial result: some nodes failed, were cut off or ran out of budget",
    ExitCode.UNANSWERED: "waits for an answer that nobody can give here (see --answer)",
    ExitCode.SUSPENDED: "suspended: its journal could not be written to (`weft resume` goes on)",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}


def statuses(codes: Iterable[ExitCode] = MEANINGS) -> str:
    """What exit statuses say, as lines of a help text."""
    return "\n".join(f"  {code:<5d}{MEANINGS[code]}" for code in codes)


def code_of(error: WeftError) -> ExitCode:
    """The exit status for a command that ends with `error`."""
    return ExitCode.INVALID if isinstance(error, (BuildError, SpecError)) else ExitCode.FAILED
