"""Calls that were not made because nobody knew how they had ended the time before."""

from __future__ import annotations

from weft.core.calls import ToolCalled, ToolReturned
from weft.core.events import NodeFinished, NodeStarted
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.engine.cassette.book import Known
from weft.engine.place import Place


class Refused:
    """Takes the records of a run in order; `at_s` tells whether a call was refused, and when.

    Nothing is written of a call that is refused: its node began once more, made none, and ended.
    """

    def __init__(self) -> None:
        self._order = 0
        self._begun: dict[tuple[NodeId, int], tuple[int, float]] = {}
        self._ended: dict[NodeId, int] = {}
        self._called: dict[tuple[NodeId, int, str], int] = {}

    def take(self, record: Record) -> None:
        """Take the next record."""
        self._order += 1
        match record:
            case NodeStarted(node=node, attempt=attempt, at_s=at_s):
                self._begun[node, attempt] = self._order, at_s
            case NodeFinished(node=node):
                self._ended[node] = self._order
            case ToolCalled(effect="once"):
                self._called[record.node, record.attempt, record.call] = self._order

    def at_s(self, place: Place, known: Known) -> float | None:
        """The second of the run at which `known`, asked for at `place`, was refused; else None."""
        called, ended = known.called, known.ended
        order = self._called.get((called.node, called.attempt, called.call))
        begun, begun_s = self._begun.get((place.node, place.attempt), (0, 0.0))
        settled = isinstance(ended, ToolReturned) and ended.done != "unknown"
        if order is None or settled or not order < begun < self._ended.get(place.node, 0):
            return None
        return begun_s
