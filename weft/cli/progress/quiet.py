"""No progress at all, for --quiet; questions still get the console."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from weft.core.events import Event

if TYPE_CHECKING:
    from rich.console import Console


class QuietProgress:
    """Implements `Progress` by showing nothing."""

    def __init__(self, console: Callable[[], Console]) -> None:
        self._console = console

    def __call__(self, event: Event) -> None:
        """Take no notice of an event."""

    def shown(self) -> AbstractAsyncContextManager[None]:
        """Nothing to begin or end."""
        return nullcontext()

    def paused(self) -> AbstractContextManager[Console]:
        """Nothing to pause."""
        return nullcontext(self._console())
