"""Calls that must not be repeated and whose end nobody knows, and what a person says of one.

Knows no journal: it is given the records of a run, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.ids import NodeId, in_any_attempt
from weft.core.ports.journal import Letter, Numbered
from weft.engine.cassette import Confirmation, Known
from weft.engine.cassette.memory import OnceMemory


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A call that stands in the way of its run. `called` is the record of its intent.

    `ended`: it failed on the way, or its result could not be kept (`lost`); None: its process died.
    """

    called: Numbered
    ended: Numbered | None
    lost: bool

    @property
    def where(self) -> str:
        """`NODE@CALL`, as `CallLog` takes a word on one call of several."""
        call = self.called.record
        assert isinstance(call, ToolCalled)
        return f"{call.node}@{call.call}"

    def is_at(self, where: str) -> bool:
        """Whether `where`, a node or `NODE@CALL`, is its place, in whatever attempt."""
        node, _, number = where.partition("@")
        call = self.called.record
        assert isinstance(call, ToolCalled)
        same = in_any_attempt(NodeId(node)) == in_any_attempt(call.node)
        return same and number in ("", call.call)


def unsettled(records: Iterable[Numbered]) -> tuple[Unsettled, ...]:
    """The calls of a run that a person has to say something of, in the order they were made.

    Of a run that is still going on, one that is under way is among them.
    """
    memory = OnceMemory()
    seen: dict[tuple[NodeId, CallId], dict[type, Numbered]] = {}
    for numbered in records:
        record = numbered.record
        if isinstance(record, ToolCalled | ToolReturned):
            memory.add(record)
            place = in_any_attempt(record.node), record.call
            if isinstance(record, ToolCalled):
                seen[place] = {}
            seen.setdefault(place, {})[type(record)] = numbered
    return tuple(
        Unsettled(found[ToolCalled], found.get(ToolReturned), known.is_lost)
        for known in memory.everything()
        if _stands_open(known)
        for found in [seen[in_any_attempt(known.called.node), known.called.call]]
    )


def bound(letter: Letter, calls: Iterable[Unsettled]) -> Mapping[str, Confirmation]:
    """The word of a letter, by the `where` of the call that it is about.

    It counts only while that very call is open: a call that was repeated on somebody's word, and
    whose end is unknown once more, needs another word.
    """
    said: Any = letter.value
    if not isinstance(said, Mapping) or said.get("said") not in ("done", "repeat"):
        return {}
    word = Confirmation(said["said"], said.get("value"))
    return {call.where: word for call in calls if call.called.seq == said.get("call")}


def _stands_open(known: Known) -> bool:
    ended = known.ended
    return not isinstance(ended, ToolReturned) or ended.done == "unknown" or known.is_lost
