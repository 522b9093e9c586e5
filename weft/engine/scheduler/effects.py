"""Calls that must not be repeated and have no usable end: nothing is retried around them.

Also the call site of the running code, for its calls to the outside.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

from weft.core.errors import EffectUnknown, Failure
from weft.core.ids import NodeId, in_any_attempt
from weft.core.values import constructor
from weft.engine.graph.node import NodeContext
from weft.engine.scheduler.state import NodePhase, NodeState


@dataclass(frozen=True, slots=True)
class CallSite:
    """An attempt (from 1) of a node function, or its continuation after a pause."""

    node: NodeId
    attempt: int


call_site = constructor(CallSite)
CALL_SITE: Final[ContextVar[CallSite | None]] = ContextVar("weft_place", default=None)
"""The call site of code that runs outside of a run; see `current_call_site`."""


EffectEnd = Literal["unknown", "done", "repeated", "lost"]


@dataclass(frozen=True, slots=True)
class UnsettledEffect:
    """A call of `tool` by `node` that must not be repeated, and that a person has to judge.

    `end` is "done" where the call was carried out, but its result cannot be used; "repeated" where
    it was not made, since another one had been made in its place and it would act a second time;
    "lost" where it was not made, since the record has lost calls and it may be among them.
    """

    node: NodeId
    tool: str
    end: EffectEnd = "unknown"

    def __str__(self) -> str:
        if self.end == "done":
            return f"{self.tool} was carried out by {self.node}, but has no result"
        if self.end == "repeated":
            return f"{self.tool} was not called by {self.node}: it would act a second time"
        text = f"nobody knows whether {self.tool} was carried out by {self.node}"
        return f"{text}: the record has lost calls" if self.end == "lost" else text


class EffectLedger:
    """The calls of one run that must not be repeated and have not ended well.

    A call is in it from the moment it is made until it has returned, or is known to have done
    nothing. `earlier`: nodes that made such calls in earlier parts of the run; `undecided`: the
    calls among them that no person has judged since; `deciders`: nodes that chose at run time what
    runs inside them, or that were replaced. `guarded`: the run's calls pass its own I/O boundary,
    which keeps them from being repeated.
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
        self._abandoned: list[tuple[NodeId, Callable[[], bool]]] = []

    def abandon(self, node: NodeId, works: Callable[[], bool]) -> None:
        """Note code of `node` that nothing waits for any more; `works` says whether it goes on."""
        self._abandoned.append((node, works))

    @property
    def abandoned(self) -> tuple[NodeId, ...]:
        """The nodes whose abandoned code still works."""
        return tuple(node for node, works in self._abandoned if works())

    def open(self, node: NodeId, tool: str, end: EffectEnd = "unknown") -> int:
        """Add a call that is made now; return its number."""
        number, self._number = self._number, self._number + 1
        self._calls[number] = UnsettledEffect(node, tool, end)
        return number

    def close(self, number: int) -> None:
        """Remove a call that ended well, or is known to have done nothing."""
        self._calls.pop(number, None)

    def carried_out(self, number: int) -> None:
        """Mark a call as carried out, without a usable result."""
        call = self._calls[number]
        self._calls[number] = UnsettledEffect(call.node, call.tool, "done")

    @property
    def unsettled(self) -> tuple[UnsettledEffect, ...]:
        """The calls, in the order in which they were made."""
        return tuple(dict.fromkeys(self._calls.values()))

    def within(
        self, state: NodeState, states: Mapping[NodeId, NodeState]
    ) -> Iterator[tuple[UnsettledEffect, NodeState]]:
        """The calls made by `state` or a node inside it, each with the node that made it."""
        for call in self._calls.values():
            maker = states.get(call.node)
            if maker is not None and any(scope is state for scope in maker.scopes()):
                yield call, maker

    def undecided_in(self, node: NodeId) -> bool:
        """Whether `node`, or one inside it, made a call earlier that no person has judged."""
        place = in_any_attempt(node)
        return any(_is_inside(made, place) for made in self._undecided)

    def decides(self, node: NodeId) -> None:
        """Record that `node` chooses at run time what runs inside it, or is replaced."""
        self._deciders.add(in_any_attempt(node))

    def is_decider(self, node: NodeId) -> bool:
        """Whether `decides` was called for `node`, here or in an earlier part."""
        return in_any_attempt(node) in self._deciders

    def share_decider(self, first: NodeId, second: NodeId) -> bool:
        """Whether a decider encloses both: one may have started because the other failed."""
        one, other = in_any_attempt(first), in_any_attempt(second)
        return any(_is_inside(one, d) and _is_inside(other, d) for d in self._deciders)

    def made_earlier(self, node: NodeId) -> bool:
        """Whether `node` made such a call in an earlier part of the run."""
        return in_any_attempt(node) in self._earlier


@dataclass(slots=True, eq=False)
class EffectScope:
    """Where the running code reports its calls: its run, and the run around that (`outer`).

    `has_boundary`: its calls pass the I/O boundary of that run. `context`: the run as that node
    function sees it.
    """

    ledger: EffectLedger
    node: NodeId
    attempt: int
    outer: EffectScope | None
    has_boundary: bool
    context: NodeContext


EFFECTS: Final[ContextVar[EffectScope | None]] = ContextVar("weft_effects", default=None)
"""None outside of a run."""


def current_call_site() -> CallSite | None:
    """The call site of the running code, in the run whose I/O boundary its calls pass."""
    scope = EFFECTS.get()
    while scope is not None and not scope.has_boundary:
        scope = scope.outer
    return CALL_SITE.get() if scope is None else call_site(scope.node, scope.attempt)


class MadeCall:
    """A call that must not be repeated, in the ledgers of all enclosing runs."""

    __slots__ = ("_entries",)

    def __init__(self, tool: str, end: EffectEnd = "unknown") -> None:
        self._entries: list[tuple[EffectLedger, int]] = []
        scope = EFFECTS.get()
        while scope is not None:
            self._entries.append((scope.ledger, scope.ledger.open(scope.node, tool, end)))
            scope = scope.outer

    def close(self) -> None:
        """Remove it: it has ended well, or done nothing."""
        for ledger, number in self._entries:
            ledger.close(number)

    def carried_out(self) -> None:
        """Mark it as carried out, without a usable result."""
        for ledger, number in self._entries:
            ledger.carried_out(number)


def made_earlier(node: NodeId) -> bool:
    """Whether `node` of this run made a call that must not be repeated, in an earlier part."""
    scope = EFFECTS.get()
    return scope is not None and scope.ledger.made_earlier(node)


def share_decider(first: NodeId, second: NodeId) -> bool:
    """`EffectLedger.share_decider` in the run of the running code."""
    scope = EFFECTS.get()
    return scope is not None and scope.ledger.share_decider(first, second)


def refusal(call: UnsettledEffect, why: Failure | None) -> EffectUnknown:
    """The error of a node that made `call`, failed for `why`, and may not be tried again."""
    because = f": {why}" if why is not None else ""
    if call.end == "done":
        return carried_out(call.node, f"{call.tool} was carried out, but has no result{because}")
    return unknown_end(call.node, f"{call.tool} was carried out when it was last called{because}")


def unknown_end(node: NodeId, what: str) -> EffectUnknown:
    """The error of a call of `node` of which it is not known whether `what`; with a hint."""
    return EffectUnknown(f"nobody knows whether {what}", hint=_confirm_hint(node))


def carried_out(node: NodeId, message: str) -> EffectUnknown:
    """The error of a call that was made, and whose result cannot be used."""
    hint = f"resume with --confirm {word_for(node, 'done:JSON')}, its result{in_python(node)}"
    return EffectUnknown(message, hint=hint)


def _confirm_hint(node: NodeId) -> str:
    """The hint for a call of `node` that may have been carried out."""
    done, repeat = word_for(node, "done:JSON"), word_for(node, "repeat")
    words = f"--confirm {done} (what it returned), or {repeat}{in_python(node)}"
    return f"find out, then resume with {words}"


def in_python(where: str) -> str:
    """What a program says instead of `--confirm`, at the end of a hint."""
    place = in_any_attempt(NodeId(where))
    return f'; in Python with confirmed={{"{place}": weft.Confirmation("done", RESULT)}}'


def word_for(where: str, word: str) -> str:
    """A value of `--confirm`, quoted for a shell."""
    return shlex.quote(f"{in_any_attempt(NodeId(where))}={word}")


def is_unknown(failure: Failure) -> bool:
    """Whether a person has to judge `failure`: nothing may replace the node that failed so."""
    return failure.error == EffectUnknown.__name__


def ended_unsettled(made: Iterable[tuple[UnsettledEffect, NodeState]]) -> UnsettledEffect | None:
    """The first of `made` whose node has ended, so that the call no longer runs."""
    return next((call for call, maker in made if maker.phase is NodePhase.ENDED), None)


def _is_inside(node: NodeId, place: NodeId) -> bool:
    return node == place or (node.startswith(place) and node[len(place)] in "/[#")
