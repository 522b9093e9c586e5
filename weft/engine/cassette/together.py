"""Answers that came so close together that the program did nothing between them.

Knows records; a player that gives such answers at one instant repeats what came of them. At their
own seconds it would not: in virtual time a program acts on the first before the second is there.
"""

from __future__ import annotations

from typing import Final

from weft.core.calls import ModelAnswered, ModelCalled, ToolCalled, ToolReturned
from weft.core.events import (
    GraphGrew,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    RunFinished,
)
from weft.core.ids import NodeId
from weft.core.ports.journal import Record

_CLOSE_S: Final = 0.05
_DEEDS: Final = (
    *(ModelCalled, ToolCalled, NodeStarted, GraphGrew, JoinDecided),
    *(HumanAsked, NodeRetrying, NodeRerouted, RunFinished),
)
"""What a program does; that a node ends well is no more than the end of its call."""
_Ended = ModelAnswered | ToolReturned
_Key = tuple[NodeId, int, str]


class Together:
    """Takes the records of a run in order; `at_s` is when an answer is to be given.

    That is when the last of those came that it came together with: at most 50 ms later.
    """

    def __init__(self) -> None:
        self._at_s: dict[_Key, float] = {}
        self._open: list[_Ended] = []

    def take(self, record: Record) -> None:
        """The next record."""
        if isinstance(record, _Ended):
            if self._open and record.at_s - self._open[0].at_s > _CLOSE_S:
                self._open = []
            self._open.append(record)
            for each in self._open:
                self._at_s[_key(each)] = record.at_s
        elif isinstance(record, _DEEDS) or _failed(record):
            self._open = []

    def at_s(self, ended: _Ended) -> float:
        """The second of the run at which `ended` is given."""
        return max(ended.at_s, self._at_s.get(_key(ended), 0.0))


def _failed(record: Record) -> bool:
    return isinstance(record, NodeFinished) and not record.outcome.ok


def _key(ended: _Ended) -> _Key:
    return ended.node, ended.attempt, ended.call
