"""The recorded calls of a run: how each began, its pieces, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal

from weft.core.calls import (
    CallEvent,
    CallId,
    Doneness,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ToolCalled,
    ToolReturned,
)
from weft.core.codec import opaque_in
from weft.core.ids import NodeId, in_any_attempt
from weft.core.ports.model import Delta, Prefilled
from weft.engine.scheduler.effects import CallSite

Piece = tuple[float, Delta | Prefilled]
"""A piece of an answer, and the second of the run at which it came."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that was made before: its beginning, its pieces, and its end if that is known."""

    called: ToolCalled | ModelCalled
    pieces: tuple[Piece, ...] = ()
    ended: ToolReturned | ModelAnswered | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it ended without a failure, with a result that is exactly recorded."""
        return self.ended is not None and self.ended.failure is None and not self.is_lost

    @property
    def done(self) -> Doneness:
        """Whether a tool was carried out, as far as is recorded."""
        return self.ended.done if isinstance(self.ended, ToolReturned) else "unknown"

    @property
    def has_acted(self) -> bool:
        """Whether the call was carried out, or may have been."""
        return self.done != "not done"

    @property
    def stands_open(self) -> bool:
        """Whether a person has to decide: it may have acted, and has no result."""
        return self.has_acted and not self.succeeded

    @property
    def is_lost(self) -> bool:
        """Whether its result is recorded only in a lossy form."""
        return isinstance(self.ended, ToolReturned) and opaque_in(self.ended.value) is not None

    @property
    def where(self) -> str:
        """`NODE@CALL`: its place, independent of the attempt."""
        return f"{in_any_attempt(self.called.node)}@{self.called.call}"

    @property
    def by_word(self) -> bool:
        """Whether it was not made, and a person reported its end."""
        return isinstance(self.called, ToolCalled) and bool(self.called.stands_for)

    @property
    def stands_in(self) -> bool:
        """Whether it was never made: a person's confirmation of another call replaces it."""
        called = self.called
        return isinstance(called, ToolCalled) and called.stands_for not in ("", self.where)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A person's statement on a call with an unknown end.

    done     it was carried out; `value` is what it returned
    repeat   it was not, or it may be repeated
    corrects an earlier statement on the same call
    """

    kind: Literal["done", "repeat"]
    value: Any = None
    corrects: bool = False


class CallIds:
    """Numbers the calls of equal content within an attempt, in call order."""

    def __init__(self) -> None:
        self._made: dict[tuple[NodeId, int, str], int] = {}

    def tool(self, place: CallSite, digest: str) -> CallId:
        """The id of the next tool call with this content."""
        return self._next(place, f"tool:{digest}")

    def model(self, place: CallSite, digest: str) -> CallId:
        """The id of the next model call with this content."""
        return self._next(place, f"model:{digest}")

    def _next(self, place: CallSite, content: str) -> CallId:
        where = place.node, place.attempt, content
        number = self._made.get(where, 0)
        self._made[where] = number + 1
        return CallId(f"{content}#{number}")


_MADE: Final[dict[tuple[type, tuple[type, ...]], type]] = {}


def fitted(kind: type, ports: Mapping[type, type], inner: object) -> type:
    """`kind` with the methods in `ports` for each port that `inner` has."""
    return with_ports(kind, tuple(own for port, own in ports.items() if _has(inner, port)))


def _has(inner: object, port: type) -> bool:
    """`isinstance(inner, port)`: each run asks, and a `Protocol` looks for its methods anew."""
    return all(getattr(inner, name, None) is not None for name in _methods(port))


@cache
def _methods(port: type) -> tuple[str, ...]:
    return tuple({name for base in port.__mro__ for name in vars(base) if name[0] != "_"})


def with_ports(kind: type, ports: tuple[type, ...]) -> type:
    """`kind` with the methods of `ports`; the same class for the same ports."""
    if not ports:
        return kind
    if (kind, ports) not in _MADE:
        _MADE[kind, ports] = type(kind.__name__, (*ports, kind), {"__module__": kind.__module__})
    return _MADE[kind, ports]


@dataclass(slots=True)
class _CallEvents:
    called: ToolCalled | ModelCalled
    pieces: list[Piece] = field(default_factory=list)
    ended: ToolReturned | ModelAnswered | None = None

    def known(self) -> RecordedCall:
        return RecordedCall(self.called, tuple(self.pieces), self.ended)


class CallMemory:
    """Calls by node, attempt and id. A call that a later part makes again replaces the old one."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, dict[tuple[int, CallId], _CallEvents]] = {}

    def add(self, event: CallEvent) -> None:
        """Add the next event, in order; ignores events of no call."""
        match event:
            case ToolCalled() | ModelCalled():
                calls = self._nodes.setdefault(event.node, {})
                calls[event.attempt, event.call] = _CallEvents(event)
            case ModelStreamed():
                if (call := self._of(event)) is not None:
                    call.pieces.extend(event.deltas)
            case ToolReturned() | ModelAnswered():
                if (call := self._of(event)) is not None:
                    call.ended = event

    def find(self, node: NodeId, attempt: int, call: CallId) -> RecordedCall | None:
        """The record of a call."""
        found = self._nodes.get(node, {}).get((attempt, call))
        return None if found is None else found.known()

    def of(self, node: NodeId, attempt: int) -> Iterator[RecordedCall]:
        """The calls of an attempt, in the order in which they were first made."""
        for (made_in, _), call in self._nodes.get(node, {}).items():
            if made_in == attempt:
                yield call.known()

    def everything(self) -> Iterator[RecordedCall]:
        """All calls, node by node, in the order in which each was first made."""
        for calls in self._nodes.values():
            for call in calls.values():
                yield call.known()

    def forget(self, node: NodeId) -> None:
        """Leave out the calls of a node."""
        self._nodes.pop(node, None)

    def _of(self, event: ModelStreamed | ToolReturned | ModelAnswered) -> _CallEvents | None:
        return self._nodes.get(event.node, {}).get((event.attempt, event.call))


class OnceMemory:
    """Calls that must not be repeated, each as the last attempt that made it recorded it.

    An attempt of an enclosing node counts as one of the node.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[NodeId, CallId], RecordedCall] = {}
        self._places: dict[NodeId, list[CallId]] = {}
        self._order: dict[tuple[NodeId, CallId], int] = {}
        self._made = 0

    def add(self, event: CallEvent) -> None:
        """Add the next event, in order."""
        if isinstance(event, ToolCalled) and event.effect == "once":
            node = in_any_attempt(event.node)
            if (node, event.call) not in self._calls:
                self._places.setdefault(node, []).append(event.call)
            self._calls[node, event.call] = RecordedCall(event)
            self._made += 1
            self._order[node, event.call] = self._made
        elif self._calls and isinstance(event, ToolReturned):
            place = in_any_attempt(event.node), event.call
            if place in self._calls:
                known = self._calls[place] = replace(self._calls[place], ended=event)
                self._settle(known, event)

    def _settle(self, known: RecordedCall, ended: ToolReturned) -> None:
        """Mark the call that `known` stands for as carried out, as a person says."""
        if known.stands_in and isinstance(known.called, ToolCalled):
            node, _, call = known.called.stands_for.rpartition("@")
            place = NodeId(node), CallId(call)
            if place in self._calls and not self._calls[place].succeeded:
                self._calls[place] = replace(self._calls[place], ended=ended)

    def find(self, node: NodeId, call: CallId) -> RecordedCall | None:
        """The record of a call."""
        return self._calls.get((in_any_attempt(node), call))

    def at(self, node: NodeId) -> Iterator[RecordedCall]:
        """The calls of a node, in the order in which each was first made."""
        place = in_any_attempt(node)
        return (self._calls[place, call] for call in self._places.get(place, ()))

    def since(self, node: NodeId, call: CallId) -> Iterator[RecordedCall]:
        """The calls last made after `call` was; all of them where it was never made."""
        made = self._order.get((in_any_attempt(node), call), -1)
        return (known for place, known in self._calls.items() if self._order[place] > made)

    def everything(self) -> Iterator[RecordedCall]:
        """All calls, in the order in which each was first made."""
        return iter(self._calls.values())
