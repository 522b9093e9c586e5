"""Passes the events of a run to its listeners and its recorder.

A listener that raises gets no more events; the others are not disturbed.
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
    """`tell` passes an event, after `redact`, to the recorder and the listeners.

    `complaints` says, in sentences, which listeners get no more events.
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
        self._set(listeners)
        self.tell: Listener = self._redact_and_notify
        if recorder is not None:
            self.tell = self._record
        elif redact is None:
            self.tell = self._notify

    @property
    def is_quiet(self) -> bool:
        """Whether no listener takes events of nodes that are appended, start and end."""
        return not any(map(self._is_taken, (NodeStarted, GraphGrew, NodeFinished)))

    def close(self) -> None:
        """Drop all listeners."""
        self._set(())

    def _redact_and_notify(self, event: Event) -> None:
        if not self._is_taken(type(event)):
            return
        for record in (event,) if self._redact is None else self._redact(event):
            if type(record) not in _CALL_EVENTS:  # the rest of a call that was cut off
                self._notify(cast(Event, record))

    def _record(self, event: Event) -> None:
        recorder, redact = self._recorder, self._redact
        assert recorder is not None
        if type(event) in self._ignored and recorder.defer(event):
            return
        for record in (event,) if redact is None else redact(event):
            recorder.record(record)
            kind = type(record)
            if kind not in self._ignored and kind not in _CALL_EVENTS:
                self._notify(cast(Event, record))

    def _notify(self, event: Event) -> None:
        kind, taken = type(event), False
        for kinds, listener in self._listeners:
            if kinds is not None and kind not in kinds:
                continue
            taken = True
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a viewer only
                self._set(other for _, other in self._listeners if other is not listener)
                self.complaints.append(f"a listener raised {error!r} and is told no more")
        if not taken:
            self._ignored.add(kind)

    def _is_taken(self, kind: type) -> bool:
        """Whether events of `kind` matter to the recorder or a listener.

        All of them matter to a listener of stream pieces: other events flush what redaction holds
        back of a stream.
        """
        return self._recorder is not None or any(
            kinds is None or kind in kinds or NodeStreamed in kinds for kinds, _ in self._listeners
        )

    def _set(self, listeners: Iterable[Listener]) -> None:
        self._ignored: set[type] = set()
        """Kinds of events that no listener takes, as far as is known."""
        self._listeners = [
            (listener.kinds if isinstance(listener, Subscription) else None, listener)
            for listener in listeners
        ]
