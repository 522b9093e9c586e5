"""Those who listen to a run. One that raises is told no more, and nobody else is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from weft.core.events import Event, Listener


class Audience:
    """`complaints` says, in sentences, who was told no more."""

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self.complaints: list[str] = []
        self._listeners = list(listeners)

    def tell(self, event: Event) -> None:
        """Tell every listener, in order."""
        for listener in self._listeners:
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a viewer only
                self._listeners = [other for other in self._listeners if other is not listener]
                self.complaints.append(f"a listener raised {error!r} and is told no more")

    def close(self) -> None:
        """Tell nobody any more."""
        self._listeners = []
