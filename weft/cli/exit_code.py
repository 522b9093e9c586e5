"""The exit statuses of every command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The documented exit statuses."""

    SUCCEEDED = 0
    FAILED = 1
    INVALID = 2
    PARTIAL = 3
    UNANSWERED = 4
    SUSPENDED = 5
    INTERRUPTED = 130
