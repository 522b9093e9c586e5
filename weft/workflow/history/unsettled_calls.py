"""Calls that must not be repeated and whose end nobody knows, and what a person says of one.

Knows no journal: it is given the records of a run, in order.
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
    """A call that stands in the way of its run. `called` is the record of its intent.

    `ended`: it failed on the way, or its result could not be kept (`lost`); None: its process died.
    `is_open`: it stands so; else it has ended well, and somebody asks for it all the same.
    """

    called: NumberedRecord
    ended: NumberedRecord | None
    lost: bool
    is_open: bool = True

    @property
    def where(self) -> str:
        """`NODE@CALL`, as `CallLog` takes a word on one call of several."""
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

        In a pattern `*` stands for anything but `/`: `first[*]/charge`. Attempts do not count.
        """
        node, _, number = where.partition("@")
        call = self.called.record
        assert isinstance(call, ToolCalled)
        return matches(node, call.node) and number in ("", call.call)


def unsettled_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls of a run that a person has to say something of, in the order they were made.

    Of a run that is still going on, one that is under way is among them.
    """
    return _calls(records, lambda known: known.stands_open)


def acted_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls that must not be repeated and were carried out, or may have been; in order."""
    return _calls(records, lambda known: known.has_acted)


def confirmed_calls(records: Iterable[NumberedRecord]) -> tuple[UnsettledCall, ...]:
    """The calls that ended as a person says, in order."""
    return _calls(records, lambda known: known.by_word)


def refused_nodes(story: RunHistory) -> tuple[NodeId, ...]:
    """The nodes that made no call because the record has lost some, theirs perhaps among them."""
    if not story.losses.unsure:
        return ()
    failed = [
        node
        for node, outcome in story.outcomes.items()
        if outcome.failure is not None and is_unknown(outcome.failure)
    ]
    made = {in_any_attempt(call.node) for call in acted_calls(story.records)}
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
    seen: dict[tuple[NodeId, CallId], dict[type, NumberedRecord]] = {}
    for numbered in records:
        record = numbered.record
        if isinstance(record, ToolCalled | ToolReturned):
            memory.add(record)
            place = in_any_attempt(record.node), record.call
            if isinstance(record, ToolCalled):
                seen[place] = {}
            seen.setdefault(place, {})[type(record)] = numbered
    return tuple(
        UnsettledCall(found[ToolCalled], found.get(ToolReturned), known.is_lost, known.stands_open)
        for known in memory.everything()
        if chosen(known) and not _is_told_by_another(known)
        for found in [seen[in_any_attempt(known.called.node), known.called.call]]
    )


def _is_told_by_another(known: RecordedCall) -> bool:
    """Whether it was not made, and the call of the same node that stands for it tells of both."""
    called = known.called
    if not known.stands_in or not isinstance(called, ToolCalled):
        return False
    return called.stands_for.rpartition("@")[0] == in_any_attempt(called.node)


def confirmation_in(letter: Letter, calls: Iterable[UnsettledCall]) -> Mapping[str, Confirmation]:
    """The word of a letter, by the `where` of the call that it is about.

    It counts only while that very call is open: a call that was repeated on somebody's word, and
    whose end is unknown once more, needs another word.
    """
    said: Any = letter.value
    if not isinstance(said, Mapping) or said.get("said") not in ("done", "repeat"):
        return {}
    word = Confirmation(said["said"], said.get("value"))
    return {call.where: word for call in calls if call.called.seq == said.get("call")}
