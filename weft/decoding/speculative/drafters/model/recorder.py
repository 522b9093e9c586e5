"""The port of those who want to know when a draft model works, and for what; `Timeline` is one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class Recorder(Protocol):
    """Puts down work as it happens."""

    def working(self, who: str, tokens: int) -> AbstractContextManager[int]:
        """`who` works on `tokens` within the block; yields what `discard` wants to know."""

    def discard(self, stamp: int, tokens: int = 1) -> None:
        """So many tokens of that work came to nothing."""
