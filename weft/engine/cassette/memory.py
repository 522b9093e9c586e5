"""Calls put together from their events: how each began, what came of it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from weft.core.calls import (
    CallEvent,
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ToolCalled,
    ToolReturned,
)
from weft.core.ids import NodeId, in_any_attempt
from weft.engine.cassette.book import Known, Piece


@dataclass(slots=True)
class _Call:
    called: ToolCalled | ModelCalled
    pieces: list[Piece] = field(default_factory=list)
    ended: ToolReturned | ModelAnswered | None = None

    def known(self) -> Known:
        return Known(self.called, tuple(self.pieces), self.ended)


class CallMemory:
    """Calls by node, attempt and id. One that is made again, by a later part, begins anew."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, dict[tuple[int, CallId], _Call]] = {}

    def add(self, event: CallEvent) -> None:
        """Take the next event, in order; what belongs to no call is of no interest here."""
        match event:
            case ToolCalled() | ModelCalled():
                calls = self._nodes.setdefault(event.node, {})
                calls[event.attempt, event.call] = _Call(event)
            case ModelStreamed():
                if (call := self._of(event)) is not None:
                    call.pieces.extend(event.deltas)
            case ToolReturned() | ModelAnswered():
                if (call := self._of(event)) is not None:
                    call.ended = event

    def find(self, node: NodeId, attempt: int, call: CallId) -> Known | None:
        """What is known of a call."""
        found = self._nodes.get(node, {}).get((attempt, call))
        return None if found is None else found.known()

    def of(self, node: NodeId, attempt: int) -> Iterator[Known]:
        """The calls of an attempt, in the order in which they were first made."""
        for (made_in, _), call in self._nodes.get(node, {}).items():
            if made_in == attempt:
                yield call.known()

    def everything(self) -> Iterator[Known]:
        """All calls, node by node, in the order in which each was first made."""
        for calls in self._nodes.values():
            for call in calls.values():
                yield call.known()

    def forget(self, node: NodeId) -> None:
        """Leave out the calls of a node."""
        self._nodes.pop(node, None)

    def _of(self, event: ModelStreamed | ToolReturned | ModelAnswered) -> _Call | None:
        return self._nodes.get(event.node, {}).get((event.attempt, event.call))


class OnceMemory:
    """Calls that must not be repeated, each as the last attempt that made it knows it.

    An attempt of what a node is inside is one of the node as well.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[NodeId, CallId], Known] = {}
        self._places: dict[NodeId, list[CallId]] = {}
        self._order: dict[tuple[NodeId, CallId], int] = {}
        self._made = 0

    def add(self, event: CallEvent) -> None:
        """Take the next event, in order."""
        if isinstance(event, ToolCalled) and event.effect == "once":
            node = in_any_attempt(event.node)
            if (node, event.call) not in self._calls:
                self._places.setdefault(node, []).append(event.call)
            self._calls[node, event.call] = Known(event)
            self._made += 1
            self._order[node, event.call] = self._made
        elif self._calls and isinstance(event, ToolReturned):
            place = in_any_attempt(event.node), event.call
            if place in self._calls:
                known = self._calls[place] = replace(self._calls[place], ended=event)
                self._settle(known, event)

    def _settle(self, known: Known, ended: ToolReturned) -> None:
        """The call that `known` stands for was carried out, as a person says."""
        if known.stands_in and isinstance(known.called, ToolCalled):
            node, _, call = known.called.stands_for.rpartition("@")
            place = NodeId(node), CallId(call)
            if place in self._calls and not self._calls[place].succeeded:
                self._calls[place] = replace(self._calls[place], ended=ended)

    def find(self, node: NodeId, call: CallId) -> Known | None:
        """What is known of a call."""
        return self._calls.get((in_any_attempt(node), call))

    def at(self, node: NodeId) -> Iterator[Known]:
        """Those of a node, in the order in which each was first made."""
        place = in_any_attempt(node)
        return (self._calls[place, call] for call in self._places.get(place, ()))

    def since(self, node: NodeId, call: CallId) -> Iterator[Known]:
        """Those that were last made after a call was; all of them where that was never made."""
        made = self._order.get((in_any_attempt(node), call), -1)
        return (known for place, known in self._calls.items() if self._order[place] > made)

    def everything(self) -> Iterator[Known]:
        """All of them, in the order in which each was first made."""
        return iter(self._calls.values())
