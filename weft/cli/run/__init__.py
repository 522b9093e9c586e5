"""The display of a run in progress: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from weft.core.events import Event

if TYPE_CHECKING:
    from rich.console import Console


class ProgressDisplay(Protocol):
    """A listener that shows a run. Its trace must receive each event first."""

    def __call__(self, event: Event) -> None:
        """Apply an event."""

    def shown(self) -> AbstractAsyncContextManager[None]:
        """Show the run while the context is open."""

    def paused(self) -> AbstractContextManager[Console]:
        """Lend the console, and show nothing meanwhile."""
