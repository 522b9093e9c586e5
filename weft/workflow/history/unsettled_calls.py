"""Calls that must not be repeated and whose end is unknown, and their confirmations.

Works on the records of a run, in order, without a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.ids import NodeId, in_any_attempt, matches, parent_of
from weft.core.ports.journal import Letter, NumberedRecord
from weft.durability.calls import Confirmation, RecordedCall
from weft.durability.calls.history import OnceMemory
from weft.engine.scheduler.effects import is_unknown
from weft.workflow.history.run_history import RunHistory


@dataclass(frozen=True, slots=True)
class UnsettledCall:
    """A call that needs a decision of a person. `called` is the record of its intent.

    `ended`: it failed on the way, or its result could not be stored (`lost`); None: its process
    died. `is_open`: its end is unknown; else it succeeded, and the run may need it again.
    """

    called: NumberedRecord
    ended: NumberedRecord | None
    lost: bool
    is_open: bool = True

    @property
    def where(self) -> str:
        """`NODE@CALL`, the key of a confirmation for one call of several."""
        call = self.called.record
        assert isinstance(call, ToolCalled)
        return f"{call.node}@{call.call}"

    @property
    def node(self) -> NodeId:
        """The node that made it."""
        assert isinstance(self.called.record, ToolCalled)
        return self.called.record.node

    def is_at(self, where: str) -> bool:
        """Whether `where`, a node, a pattern of nodes or `NODE@CALL`, is its place.

        In a pattern `*` matches anything but `/`: `first[*]/charge`. Attempts do not count.
        """
        node, _, number = where.partition("@")
        call = self.called.record
        assert isinstance(call, ToolCalled)
        return matches(node, call.node) and number in ("", call.call)


def unsettled_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls of a run that a person must decide about, in the order they were made.

    In a run that still executes, calls in progress are among them.
    """
    return _calls(records, lambda call: call.stands_open)


def acted_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls that must not be repeated and were or may have been carried out, in order."""
    return _calls(records, lambda call: call.has_acted)


def confirmed_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls whose end a person has confirmed, in order."""
    return _calls(records, lambda call: call.by_word)


def refused_nodes(history: RunHistory) -> tuple[NodeId, ...]:
    """The nodes that refused a call because the record has lost calls, perhaps theirs."""
    if not history.losses.unsure:
        return ()
    failed = [
        node
        for node, outcome in history.outcomes.items()
        if outcome.failure is not None and is_unknown(outcome.failure)
    ]
    made = {in_any_attempt(call.node) for call in acted_calls(history.records)}
    around = {parent for node in failed for parent in _around(node)}
    return tuple(n for n in failed if in_any_attempt(n) not in made and n not in around)


def _around(node: NodeId) -> Iterator[NodeId]:
    parent = parent_of(node)
    while parent is not None:
        yield parent
        parent = parent_of(parent)


def _calls(
    records: Iterable[NumberedRecord], chosen: Callable[[RecordedCall], bool]
) -> tuple[UnsettledCall, ...]:
    memory = OnceMemory()
    numbered_of: dict[tuple[NodeId, CallId], dict[type, NumberedRecord]] = {}
    for numbered in records:
        record = numbered.record
        if isinstance(record, ToolCalled | ToolReturned):
            memory.add(record)
            place = in_any_attempt(record.node), record.call
            if isinstance(record, ToolCalled):
                numbered_of[place] = {}
            numbered_of.setdefault(place, {})[type(record)] = numbered
    return tuple(
        UnsettledCall(found[ToolCalled], found.get(ToolReturned), call.is_lost, call.stands_open)
        for call in memory.everything()
        if chosen(call) and not _is_replaced(call)
        for found in [numbered_of[in_any_attempt(call.called.node), call.called.call]]
    )


def _is_replaced(call: RecordedCall) -> bool:
    """Whether it was not made because another call of the same node stands for it."""
    called = call.called
    if not call.stands_in or not isinstance(called, ToolCalled):
        return False
    return called.stands_for.rpartition("@")[0] == in_any_attempt(called.node)


def confirmation_in(signal: Letter, calls: Iterable[UnsettledCall]) -> Mapping[str, Confirmation]:
    """The confirmation in a signal, by the `where` of its call.

    It applies only while that call is open: a call that was repeated on a confirmation, and whose
    end is unknown again, needs another one.
    """
    content: Any = signal.value
    if not isinstance(content, Mapping) or content.get("said") not in ("done", "repeat"):
        return {}
    confirmation = Confirmation(content["said"], content.get("value"))
    return {call.where: confirmation for call in calls if call.called.seq == content.get("call")}
