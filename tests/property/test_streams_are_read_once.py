"""Whoever collects a stream copies none of it again for each piece: counted in characters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex, cast

import pytest

from weft.core.events import NodeStreamed
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest, Sampling, TextDelta, ToolCallDelta
from weft.core.values import Completion, Message
from weft.engine import NodeContext
from weft.planner.draft import PlanDraft, PlanHooks
from weft.planner.text.reader import PlanReader
from weft.reasoning.runtime.tree import DecodeCall
from weft.serving.fleet.resume import RepeatedStream
from weft.serving.fleet.transcript import Transcript
from weft.serving.moderation import FunctionJudge
from weft.serving.moderation.model import _Review
from weft.testing import FakeModel
from weft.workflow.runtime.models.think import _Transcript

PIECES = 400
LENGTH = 5
ASKED = ModelRequest((Message("user", "?"),))


class Text(str):
    """A text that counts the characters that are copied when it is added to, or cut."""

    __slots__ = ()
    copied = 0

    def __add__(self, more: str) -> Text:
        return self._made(str(self) + more)

    def __radd__(self, before: str) -> Text:
        return self._made(before + str(self))

    def __getitem__(self, key: SupportsIndex | slice) -> Text:
        return self._made(str(self)[key])

    def _made(self, text: str) -> Text:
        Text.copied += len(text)
        return Text(text)


@pytest.fixture(autouse=True)
def _count() -> Iterator[None]:
    Text.copied = 0
    yield
    whole = PIECES * LENGTH
    assert Text.copied <= 4 * whole, f"{Text.copied:,} characters copied for {whole:,}"


def pieces() -> list[Text]:
    return [Text(f"{number:04d} ") for number in range(PIECES)]


WHOLE = "".join(pieces())


class Nowhere:
    """A context that shows nothing."""

    def stream(self, text: str, tokens: int = 0) -> None:
        """Nobody looks."""


def test_a_decode_of_a_thread() -> None:
    call = DecodeCall(FakeModel([""]), ASKED, 10_000)
    for piece in pieces():
        call._take(cast("NodeContext", Nowhere()), TextDelta(piece, (1,)))
    assert call.text == WHOLE


@pytest.mark.parametrize("cut", [False, True])
def test_a_moderated_answer(cut: bool) -> None:
    review = _Review(ASKED, FunctionJudge(lambda _: None))
    shown: list[Any] = []
    for piece in pieces():
        review.take(TextDelta(piece))
        shown += review.release()
    assert "".join(delta.text for delta in shown) == WHOLE
    if cut:
        assert review.refused("m", "no").text == WHOLE
    else:
        assert asyncio.run(review.objection()) is None


def test_a_plan_while_it_is_written() -> None:
    class Writer(FakeModel):
        async def generate(self, request: ModelRequest) -> Any:  # type: ignore[override]
            for piece in pieces():
                yield TextDelta(piece)
            yield Completion(WHOLE, "length")

    draft = PlanDraft(Writer([""]), ASKED.messages, PlanReader(), PlanHooks())

    async def main() -> None:
        async for _ in draft.write(Sampling()):
            raise AssertionError

    asyncio.run(main())
    assert draft.text == WHOLE


def test_what_threads_tell() -> None:
    told = _Transcript(None)
    for piece in pieces():
        told.add(NodeStreamed(NodeId("a/b"), piece, 1, 0.0))
    assert "".join(told._writing[NodeId("a/b")]) == WHOLE


def test_a_call_of_a_tool_that_may_have_to_be_asked_for_again() -> None:
    transcript = Transcript(ASKED)
    for piece in pieces():
        transcript.note(ToolCallDelta(0, piece, "id", "name"))
    assert transcript.calls[0].arguments == WHOLE
    assert (transcript.calls[0].id, transcript.calls[0].name) == ("id", "name")


def _as_text() -> Callable[[Transcript], Text]:
    return lambda _: Text(WHOLE)


def test_an_answer_that_is_compared_with_what_was_delivered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Transcript, "text", property(_as_text()))
    again = RepeatedStream(Transcript(ASKED))
    assert [again.take(TextDelta(piece)) for piece in pieces()] == [[]] * PIECES
    assert again.take(TextDelta("more")) == [TextDelta("more")]
