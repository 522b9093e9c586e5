"""The thread that owns a model, and the assembly of requests that run as a group."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.core.errors import ModelRequestError, ModelTimeout, WeftError
from weft.core.ports.model import ConcurrentAttention
from weft.serving.local.ticket import Ticket, converted, held_events

if TYPE_CHECKING:
    from weft.serving.local.ticket import ModelBatcher


class ModelThread:
    """Serves tickets from any thread on one thread.

    The thread is not a daemon: the interpreter waits for rows whose streams are still open, and a
    closed stream ends its row before the next step.
    """

    def __init__(self, load: Callable[[], ModelBatcher]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._arrived: list[tuple[Ticket, ...]] = []
        self._thread: threading.Thread | None = None
        self._closed: WeftError | None = None
        self._batcher: ModelBatcher | None = None

    @property
    def forwards(self) -> int:
        """Forward passes so far."""
        return self._batcher.forwards if self._batcher else 0

    @property
    def running(self) -> int:
        """Rows of the batch in use."""
        return len(self._batcher.rows) if self._batcher else 0

    def submit(self, *tickets: Ticket) -> None:
        """Submit a ticket, or those of a group that runs together.

        They receive events, or one error.
        """
        with self._lock:
            if self._closed is not None:
                self._refuse([tickets], self._closed)
                return
            self._arrived.append(tickets)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="weft-local-model")
                self._thread.start()

    def close(self, reason: WeftError) -> None:
        """End running tickets with `reason`, release the weights, wait for the thread."""
        with self._lock:
            self._closed = self._closed or reason
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._batcher is not None:
            self._batcher.close()
        self._batcher = None

    def _run(self) -> None:
        while self._take_in():
            if self._batcher is not None:
                self._step(self._batcher)

    def _take_in(self) -> bool:
        """Move arrived tickets to the batcher; whether there is anything to do."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
            if self._closed is not None:
                self._refuse(arrived, self._closed)
                if self._batcher is not None:
                    self._batcher.abort(self._closed)
                arrived = []
            if not arrived and (self._batcher is None or self._batcher.idle):
                self._thread = None
                return False
        self._add(arrived)
        return True

    def _add(self, arrived: list[tuple[Ticket, ...]]) -> None:
        if not arrived:
            return
        try:
            batcher = self._batcher = self._batcher or self._load()
        except BaseException as error:  # noqa: BLE001 - converted for all that wait
            self._refuse(arrived, converted("the model cannot be loaded", error))
            return
        for tickets in arrived:
            batcher.add(*tickets)

    def _step(self, batcher: ModelBatcher) -> None:
        with held_events():
            try:
                batcher.step()
            except BaseException as error:  # noqa: BLE001 - converted for all that wait
                batcher.abort(converted("the model failed", error))

    def _refuse(self, arrived: list[tuple[Ticket, ...]], error: WeftError) -> None:
        for ticket in (ticket for tickets in arrived for ticket in tickets):
            ticket.put(error)


class GroupAssembler:
    """Collects the workers of a group until all have come. Any thread may call it.

    `submit` gets the tickets of a full group, in the order of its workers.
    """

    def __init__(self, submit: Callable[..., None]) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._groups: dict[str, dict[int, Ticket]] = {}

    def add(self, ticket: Ticket) -> None:
        """Add a worker. One that does not fit the others of its group gets an error."""
        attention = _attention(ticket)
        with self._lock:
            group = self._groups.setdefault(attention.group, {})
            wrong = _misfit(attention, group)
            if wrong:
                ticket.put(ModelRequestError(wrong, hint="every group has a name of its own"))
                return
            group[attention.index] = ticket
            if len(group) < attention.workers:
                return
            del self._groups[attention.group]
        self._submit(*(group[index] for index in sorted(group)))

    def leave(self, ticket: Ticket) -> None:
        """Remove a worker that still waits."""
        attention = _attention(ticket)
        with self._lock:
            group = self._groups.get(attention.group, {})
            if group.get(attention.index) is ticket:
                del group[attention.index]
                if not group:
                    del self._groups[attention.group]

    def give_up(self, ticket: Ticket, waited_s: float) -> None:
        """End the whole group if this worker still waits."""
        attention = _attention(ticket)
        with self._lock:
            group = self._groups.get(attention.group, {})
            if group.get(attention.index) is not ticket:
                return
            del self._groups[attention.group]
        missing = sorted(set(range(attention.workers)) - set(group))
        error = ModelTimeout(
            f"{len(group)} of {attention.workers} workers of group {attention.group!r} came within"
            f" {waited_s:g} s; {missing} are missing",
            hint="ask for all of them at once, with as many calls of the model allowed at a time",
        )
        for waiting in group.values():
            waiting.put(error)

    def close(self, reason: WeftError) -> None:
        """End every worker that still waits."""
        with self._lock:
            groups, self._groups = self._groups, {}
        for group in groups.values():
            for ticket in group.values():
                ticket.put(reason)


def _attention(ticket: Ticket) -> ConcurrentAttention:
    assert ticket.request.attention is not None
    return ticket.request.attention


def _misfit(attention: ConcurrentAttention, group: dict[int, Ticket]) -> str:
    name = f"worker {attention.index} of group {attention.group!r}"
    if attention.index in group:
        return f"{name} is there already"
    for other in group.values():
        theirs = _attention(other)
        if (theirs.workers, theirs.layout) != (attention.workers, attention.layout):
            return (
                f"{name} says {attention.workers} workers, {attention.layout}; the others say"
                f" {theirs.workers}, {theirs.layout}"
            )
    return ""
