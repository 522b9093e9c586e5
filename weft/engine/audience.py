"""Those who listen to a run. One that raises is told no more, and nobody else is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from weft.core.events import Event, Listener, NodeStreamed, Subscription


class Audience:
    """`complaints` says, in sentences, who was told no more."""

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self.complaints: list[str] = []
        self._keep(listeners)

    def tell(self, event: Event) -> None:
        """Tell every listener, in order."""
        for kinds, listener in self._listeners:
            if kinds is not None and type(event) not in kinds:
                continue
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a viewer only
                self._keep(other for _, other in self._listeners if other is not listener)
                self.complaints.append(f"a listener raised {error!r} and is told no more")

    def hears(self, kind: type) -> bool:
        """Whether events of `kind` matter to somebody.

        To who is told pieces of streams all do: what is held back of a stream comes with others.
        """
        return any(
            kinds is None or kind in kinds or NodeStreamed in kinds for kinds, _ in self._listeners
        )

    def close(self) -> None:
        """Tell nobody any more."""
        self._keep(())

    def _keep(self, listeners: Iterable[Listener]) -> None:
        self._listeners = [
            (listener.kinds if isinstance(listener, Subscription) else None, listener)
            for listener in listeners
        ]
