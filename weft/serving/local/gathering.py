"""Keeps the workers of a group until all of them have come, so that the model gets whole groups.

Knows tickets; knows nothing of how they are run. Its methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from weft.core.errors import ModelRequestError, ModelTimeout, WeftError
from weft.core.ports.model import ConcurrentAttention
from weft.serving.local.ticket import Ticket


class Gathering:
    """`submit` is given the tickets of a full group, in the order of its workers."""

    def __init__(self, submit: Callable[..., None]) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._groups: dict[str, dict[int, Ticket]] = {}

    def add(self, ticket: Ticket) -> None:
        """Take a worker on. One that does not fit the others of its group gets an error."""
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
        """A worker that still waits does so no longer: its place is open again."""
        attention = _attention(ticket)
        with self._lock:
            group = self._groups.get(attention.group, {})
            if group.get(attention.index) is ticket:
                del group[attention.index]
                if not group:
                    del self._groups[attention.group]

    def give_up(self, ticket: Ticket, waited_s: float) -> None:
        """End the whole group if this worker of it still waits."""
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
