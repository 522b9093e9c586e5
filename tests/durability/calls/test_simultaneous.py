"""Answers that came with nothing between them are given at one instant; no others are."""

from __future__ import annotations

from weft.core.calls import CallId, ModelAnswered, ModelCalled, ToolReturned
from weft.core.events import NodeFinished, Outcome
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Record
from weft.core.values import Completion, Message
from weft.durability.calls.cassette import AnswerGroups


def answered(node: str, at_s: float) -> ModelAnswered:
    return ModelAnswered(NodeId(node), 1, CallId("model:x#0"), Completion("x"), None, at_s)


def given(*records: Record) -> list[float]:
    together = AnswerGroups()
    for record in records:
        together.take(record)
    ends = [record for record in records if isinstance(record, ModelAnswered | ToolReturned)]
    return [together.due(end).at_s for end in ends]


def finished(node: str, status: str, at_s: float) -> NodeFinished:
    return NodeFinished(NodeId(node), Outcome(status), at_s)  # type: ignore[arg-type]


def test_close_answers_come_with_the_last_of_them() -> None:
    a, b, c = answered("a", 1.0), answered("b", 1.01), answered("c", 1.02)
    assert given(a, finished("a", "succeeded", 1.0), b, c) == [1.02, 1.02, 1.02]


def test_what_the_program_did_between_keeps_them_apart() -> None:
    a, b = answered("a", 1.0), answered("b", 1.01)
    request = ModelRequest((Message("user", "why?"),))
    called = ModelCalled(NodeId("c"), 1, CallId("model:y#0"), "m", request, 1.005)
    assert given(a, called, b) == [1.0, 1.01]
    assert given(a, finished("c", "cancelled", 1.005), b) == [1.0, 1.01]


def test_none_waits_for_longer_than_a_moment() -> None:
    ends = [answered(f"n{i}", i * 0.02) for i in range(9)]
    late = [at_s - end.at_s for at_s, end in zip(given(*ends), ends, strict=True)]
    assert max(late) <= 0.05
    assert min(late) >= 0.0
    assert given(answered("a", 1.0), answered("b", 3.0)) == [1.0, 3.0]
