"""Calls that must not be repeated and have no usable end: nothing is tried again around them.

Also the call site of the code that runs now, for what it calls outside.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

from weft.core.errors import EffectUnknown, Failure
from weft.core.ids import NodeId, in_any_attempt
from weft.core.values import constructor
from weft.engine.scheduler.state import NodePhase, NodeState


@dataclass(frozen=True, slots=True)
class CallSite:
    """An attempt (from 1) of a node's work, or what it goes on with after a pause."""

    node: NodeId
    attempt: int


call_site = constructor(CallSite)
CALL_SITE: Final[ContextVar[CallSite | None]] = ContextVar("weft_place", default=None)
"""The place of code that runs outside of a run. See
`weft.engine.scheduler.effects.current_call_site`.
"""


EffectEnd = Literal["unknown", "done", "repeated", "lost"]


@dataclass(frozen=True, slots=True)
class UnsettledEffect:
    """A call of `tool` by `node` that must not be repeated, and that a person has to judge.

    `end` is "done" where the call was carried out, but its result cannot be used, and "repeated"
    where it was not made: another one had been made in its place, and it would act a second time.
    "lost": it was not made, since the record has lost calls, and it may have been among them.
    """

    node: NodeId
    tool: str
    end: EffectEnd = "unknown"

    def __str__(self) -> str:
        if self.end == "done":
            return f"{self.tool} was carried out by {self.node}, but has no result"
        if self.end == "repeated":
            return f"{self.tool} was not called by {self.node}: it would act a second time"
        told = f"nobody knows whether {self.tool} was carried out by {self.node}"
        return f"{told}: the record has lost calls" if self.end == "lost" else told


class EffectLedger:
    """The calls of one run that must not be repeated and have not ended well.

    A call is in it from the moment it is made; it leaves when it has returned, or when it is known
    that nothing happened. `earlier`: nodes that have made such calls in earlier parts of the run;
    `undecided`: the calls among them that nobody has judged since; `deciders`: nodes that chose, as
    they went, what runs inside them, or that something stood in for. `guarded`: the run's calls
    pass a border of its own, which keeps them from being repeated.
    """

    def __init__(
        self,
        earlier: Iterable[NodeId] = (),
        undecided: Iterable[UnsettledEffect] = (),
        *,
        deciders: Iterable[NodeId] = (),
        guarded: bool = False,
    ) -> None:
        self.guarded = guarded
        self._deciders = set(map(in_any_attempt, deciders))
        self._calls = dict(enumerate(undecided))
        self._number = len(self._calls)
        self._earlier = frozenset(map(in_any_attempt, earlier))
        self._undecided = tuple(in_any_attempt(call.node) for call in self._calls.values())

    def open(self, node: NodeId, tool: str, end: EffectEnd = "unknown") -> int:
        """A call is made. Returns its number here."""
        number, self._number = self._number, self._number + 1
        self._calls[number] = UnsettledEffect(node, tool, end)
        return number

    def close(self, number: int) -> None:
        """It has ended well, or it is known that it did nothing."""
        self._calls.pop(number, None)

    def carried_out(self, number: int) -> None:
        """It was carried out, and has no result that can be used."""
        call = self._calls[number]
        self._calls[number] = UnsettledEffect(call.node, call.tool, "done")

    @property
    def unsettled(self) -> tuple[UnsettledEffect, ...]:
        """All of them, in the order in which they were made."""
        return tuple(dict.fromkeys(self._calls.values()))

    def within(
        self, state: NodeState, states: Mapping[NodeId, NodeState]
    ) -> Iterator[tuple[UnsettledEffect, NodeState]]:
        """Those made by `state` or by a node inside it, each with the node that made it."""
        for call in self._calls.values():
            maker = states.get(call.node)
            if maker is not None and any(scope is state for scope in maker.scopes()):
                yield call, maker

    def undecided_in(self, node: NodeId) -> bool:
        """Whether `node`, or one inside it, made a call earlier that nobody has judged."""
        place = in_any_attempt(node)
        return any(_is_inside(made, place) for made in self._undecided)

    def decides(self, node: NodeId) -> None:
        """`node` chooses what runs inside it as it goes, or something stands in for it."""
        self._deciders.add(in_any_attempt(node))

    def is_decider(self, node: NodeId) -> bool:
        """Whether `decides` was told of `node`, here or in an earlier part."""
        return in_any_attempt(node) in self._deciders

    def share_decider(self, first: NodeId, second: NodeId) -> bool:
        """Whether a decider holds both: one may have been started since the other had failed."""
        one, other = in_any_attempt(first), in_any_attempt(second)
        return any(_is_inside(one, d) and _is_inside(other, d) for d in self._deciders)

    def made_earlier(self, node: NodeId) -> bool:
        """Whether `node` made such a call in an earlier part of the run."""
        return in_any_attempt(node) in self._earlier


@dataclass(slots=True, eq=False)
class EffectScope:
    """Where the code that runs now reports its calls: to its run, and to the run around that.

    `bordered`: its calls pass a border of that run.
    """

    ledger: EffectLedger
    node: NodeId
    attempt: int
    outer: EffectScope | None
    bordered: bool


EFFECTS: Final[ContextVar[EffectScope | None]] = ContextVar("weft_effects", default=None)
"""None outside of a run."""


def current_call_site() -> CallSite | None:
    """The place of the code that runs now, in the run whose border its calls pass."""
    scope = EFFECTS.get()
    while scope is not None and not scope.bordered:
        scope = scope.outer
    return CALL_SITE.get() if scope is None else call_site(scope.node, scope.attempt)


class MadeCall:
    """A call that must not be repeated, as every run knows it that it is inside of."""

    __slots__ = ("_entries",)

    def __init__(self, tool: str, end: EffectEnd = "unknown") -> None:
        self._entries: list[tuple[EffectLedger, int]] = []
        scope = EFFECTS.get()
        while scope is not None:
            self._entries.append((scope.ledger, scope.ledger.open(scope.node, tool, end)))
            scope = scope.outer

    def close(self) -> None:
        """It has ended well, or nothing happened."""
        for ledger, number in self._entries:
            ledger.close(number)

    def carried_out(self) -> None:
        """It was carried out, and has no result that can be used."""
        for ledger, number in self._entries:
            ledger.carried_out(number)


def made_earlier(node: NodeId) -> bool:
    """Whether `node` of this run made a call that must not be repeated, in an earlier part."""
    scope = EFFECTS.get()
    return scope is not None and scope.ledger.made_earlier(node)


def share_decider(first: NodeId, second: NodeId) -> bool:
    """See `EffectLedger.share_decider`, in the run of the code that runs now."""
    scope = EFFECTS.get()
    return scope is not None and scope.ledger.share_decider(first, second)


def refusal(call: UnsettledEffect, why: Failure | None) -> EffectUnknown:
    """What a node fails with that made `call`, and may not be tried again; `why` it failed."""
    because = f": {why}" if why is not None else ""
    if call.end == "done":
        return carried_out(call.node, f"{call.tool} was carried out, but has no result{because}")
    return unknown_end(call.node, f"{call.tool} was carried out when it was last called{because}")


def unknown_end(node: NodeId, what: str) -> EffectUnknown:
    """Nobody knows whether `what` holds of a call of `node`; how to find out and say it."""
    return EffectUnknown(f"nobody knows whether {what}", hint=ask_for_word(node))


def carried_out(node: NodeId, message: str) -> EffectUnknown:
    """A call was made, and what it returned cannot be used."""
    hint = f"resume with --confirm {word_for(node, 'done:JSON')}, its result"
    return EffectUnknown(message, hint=hint)


def ask_for_word(node: NodeId) -> str:
    """The hint for a call of `node` that may have been carried out."""
    done, repeat = word_for(node, "done:JSON"), word_for(node, "repeat")
    return f"find out, then resume with --confirm {done} (what it returned), or {repeat}"


def word_for(where: str, said: str) -> str:
    """A value of `--confirm`, as a shell takes it."""
    return shlex.quote(f"{in_any_attempt(NodeId(where))}={said}")


def is_unknown(failure: Failure) -> bool:
    """Whether `failure` is for a person: nothing may stand in for what failed by it."""
    return failure.error == EffectUnknown.__name__


def ended_unsettled(made: Iterable[tuple[UnsettledEffect, NodeState]]) -> UnsettledEffect | None:
    """The first of `made` whose node has ended: that call is not under way any more."""
    return next((call for call, maker in made if maker.phase is NodePhase.ENDED), None)


def _is_inside(node: NodeId, place: NodeId) -> bool:
    return node == place or (node.startswith(place) and node[len(place)] in "/[#")
