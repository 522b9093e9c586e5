"""Those who are told what happens in a run: its listeners and its recorder.

One that raises is told no more, and nobody else is disturbed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import cast, get_args

from weft.core.calls import CallEvent
from weft.core.events import (
    Event,
    GraphGrew,
    Listener,
    NodeFinished,
    NodeStarted,
    NodeStreamed,
    Subscription,
)
from weft.core.ports.journal import Record
from weft.engine.runner.recorder import RunRecorder

_CALL_EVENTS = frozenset(get_args(CallEvent))


class Listeners:
    """`tell` tells everybody of an event: of what `redact` leaves of it.

    `complaints` says, in sentences, which listeners are told no more.
    """

    def __init__(
        self,
        listeners: Iterable[Listener],
        redact: Callable[[Event], Iterable[Record]] | None = None,
        recorder: RunRecorder | None = None,
    ) -> None:
        self.complaints: list[str] = []
        self._redact = redact
        self._recorder = recorder
        self._keep(listeners)
        self.tell: Listener = self._hand_out
        if recorder is not None:
            self.tell = self._record
        elif redact is None:
            self.tell = self._listen

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is told when nodes are appended, start and end."""
        return not any(map(self._hears, (NodeStarted, GraphGrew, NodeFinished)))

    def close(self) -> None:
        """Tell no listener any more."""
        self._keep(())

    def _hand_out(self, event: Event) -> None:
        if not self._hears(type(event)):
            return
        for told in (event,) if self._redact is None else self._redact(event):
            if type(told) not in _CALL_EVENTS:  # the rest of a call that was cut off
                self._listen(cast(Event, told))

    def _record(self, event: Event) -> None:
        recorder, redact = self._recorder, self._redact
        assert recorder is not None
        if type(event) in self._unheard and recorder.hold(event):
            return
        for told in (event,) if redact is None else redact(event):
            recorder.hear(told)
            kind = type(told)
            if kind not in self._unheard and kind not in _CALL_EVENTS:
                self._listen(cast(Event, told))

    def _listen(self, event: Event) -> None:
        kind, heard = type(event), False
        for kinds, listener in self._listeners:
            if kinds is not None and kind not in kinds:
                continue
            heard = True
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a viewer only
                self._keep(other for _, other in self._listeners if other is not listener)
                self.complaints.append(f"a listener raised {error!r} and is told no more")
        if not heard:
            self._unheard.add(kind)

    def _hears(self, kind: type) -> bool:
        """Whether events of `kind` matter to somebody.

        To who is told pieces of streams all do: what is held back of a stream comes with others.
        """
        return self._recorder is not None or any(
            kinds is None or kind in kinds or NodeStreamed in kinds for kinds, _ in self._listeners
        )

    def _keep(self, listeners: Iterable[Listener]) -> None:
        self._unheard: set[type] = set()
        """Kinds of events that no listener takes, as far as it is known."""
        self._listeners = [
            (listener.kinds if isinstance(listener, Subscription) else None, listener)
            for listener in listeners
        ]
