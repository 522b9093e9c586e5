"""What the thread of a local model works on: any batcher, of whichever kind of model."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from weft.core.errors import WeftError
from weft.serving.local.ticket import Ticket


class Batching(Protocol):
    """Rows that share forwards. Used by one thread."""

    @property
    def forwards(self) -> int:
        """Forward passes so far."""

    @property
    def rows(self) -> Sized:
        """What runs."""

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""

    def add(self, *tickets: Ticket) -> None:
        """Queue a request, or those of a group. A bad one gets its error at once."""

    def step(self) -> None:
        """One forward. What it raises is every row's."""

    def abort(self, error: WeftError) -> None:
        """End everything that runs or waits with `error`, and forget what was cached."""

    def close(self) -> None:
        """Let go of what was opened. Nothing may run."""
