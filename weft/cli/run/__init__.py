"""What people see while a run goes on: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from weft.core.events import Event

if TYPE_CHECKING:
    from rich.console import Console


class ProgressDisplay(Protocol):
    """A listener that shows a run. It hears an event after the trace it reads from has."""

    def __call__(self, event: Event) -> None:
        """Take in one event."""

    def shown(self) -> AbstractAsyncContextManager[None]:
        """While the context is open, show what goes on."""

    def paused(self) -> AbstractContextManager[Console]:
        """Lend the console to somebody else, and show nothing meanwhile."""
