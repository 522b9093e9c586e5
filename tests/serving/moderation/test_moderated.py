"""What a moderator lets through: piece by piece, and nothing that was not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    complete,
)
from weft.core.values import Completion, Message, ToolCall, Usage
from weft.serving.moderation import FunctionJudge, Judge, ModeratedModel, ModerationJudge
from weft.testing import FakeModel

ASKED = ModelRequest((Message("user", "the question"),))


class Writer:
    """Implements `ModelClient`: streams what it is given, and knows whether it was cut off."""

    model = "writer"

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events
        self.ended = False
        self.given = 0

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            for event in self._events:
                self.given += 1
                yield event
        finally:
            self.ended = True

    async def aclose(self) -> None:
        """Holds nothing."""


class Reader:
    """A judge that minds a word, and keeps what it read."""

    def __init__(self, word: str = "bad") -> None:
        self.word = word
        self.read: list[str] = []

    async def objection(self, text: str) -> str | None:
        self.read.append(text)
        return "a word" if self.word in text else None


def writer(texts: Sequence[str], **more: object) -> Writer:
    deltas = [TextDelta(text, (1,) * len(text)) for text in texts]
    return Writer(Prefilled((1, 2, 3)), *deltas, Completion("".join(texts)))


def heard(model: ModeratedModel, request: ModelRequest = ASKED) -> list[ModelEvent]:
    async def main() -> list[ModelEvent]:
        return [event async for event in model.generate(request)]

    return asyncio.run(main())


def test_each_piece_is_read_together_with_all_before_it() -> None:
    reader = Reader()
    events = heard(ModeratedModel(writer(["one ", "two ", "three"]), reader, every=1))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "one ",
        "two ",
        "three",
    ]
    assert events[-1] == Completion("one two three")
    read = ["one ", "one two ", "one two three"]  # the end says nothing new: it is not read twice
    assert reader.read == [f"the question\n{text}" for text in read]


def test_what_is_minded_and_all_behind_it_never_shows() -> None:
    client = writer(["fine ", "bad ", "more"])
    *shown, last = heard(ModeratedModel(client, Reader(), every=1))
    assert shown == [Prefilled((1, 2, 3)), TextDelta("fine ", (1,) * 5)]
    usage = Usage(3, 9, requests=1)  # what is not shown was written all the same
    assert last == Completion("fine ", "refused", usage=usage, model="writer", refusal="a word")
    assert client.ended
    assert client.given == 3  # what is behind was not waited for


def test_whoever_cannot_use_half_of_an_answer_is_told_the_objection() -> None:
    model = ModeratedModel(writer(["bad"]), Reader())
    with pytest.raises(ModelRequestError, match=r"the answer of writer was refused: a word\Z"):
        asyncio.run(complete(model, ASKED))
    endless = ModeratedModel(writer(["bad"]), FunctionJudge(lambda text: text * 1000))
    *_, last = heard(endless)
    assert isinstance(last, Completion)
    assert len(last.refusal) == 200


def test_a_text_that_two_pieces_make_is_seen() -> None:
    *_, last = heard(ModeratedModel(writer(["ba", "d"]), Reader(), every=1))
    assert isinstance(last, Completion)
    assert (last.text, last.finish_reason) == ("ba", "refused")


@given(st.lists(st.sampled_from(["a", "bad", "bcd", "ba", "d"]), max_size=8), st.integers(1, 9))
def test_no_text_that_is_minded_is_ever_shown(texts: list[str], every: int) -> None:
    events = heard(ModeratedModel(writer(texts), Reader(), every=every))
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    last = events[-1]
    assert isinstance(last, Completion)
    assert last.text == shown
    assert "bad" not in shown
    assert (last.finish_reason == "refused") == ("bad" in "".join(texts))


def test_without_a_number_of_tokens_an_answer_is_read_once_and_whole() -> None:
    reader = Reader()
    heard(ModeratedModel(writer(["one ", "two"]), reader))
    assert reader.read == ["the question\none two"]


def test_reasoning_and_calls_of_tools_are_read_too() -> None:
    def last(*events: ModelEvent) -> str:
        *_, end = heard(ModeratedModel(Writer(*events), Reader(), every=1))
        assert isinstance(end, Completion)
        return end.finish_reason

    assert last(ReasoningDelta("a bad idea"), Completion("", reasoning="a bad idea")) == "refused"
    call = ToolCall("1", "send", '{"text": "bad"}')
    assert last(Completion("", "tool_calls", (call,))) == "refused"


def test_token_ids_cannot_be_read() -> None:
    with pytest.raises(CapabilityError, match="by messages"):
        heard(ModeratedModel(writer([]), Reader()), ModelRequest((), prompt_token_ids=(1,)))


def judged(judge: Judge, text: str = "a text") -> str | None:
    return asyncio.run(judge.objection(text))


def test_a_function_judges_plain_or_async() -> None:
    async def later(text: str) -> str | None:
        return "no" if "bad" in text else None

    for function in (later, lambda text: "no" if "bad" in text else None):
        assert judged(FunctionJudge(function)) is None
        assert judged(FunctionJudge(function), "bad") == "no"
    assert judged(FunctionJudge(lambda _: "")) is None


@pytest.mark.parametrize(
    ("function", "why"), [(lambda _: 1 / 0, "ZeroDi"), (lambda _: True, "bool")]
)
def test_a_function_that_fails_lets_nothing_through(function: object, why: str) -> None:
    model = ModeratedModel(writer(["one"]), FunctionJudge(function), every=1)  # type: ignore[arg-type]
    shown: list[object] = []
    with pytest.raises(ModelRequestError, match=f"could not judge the answer: .*{why}"):
        asyncio.run(complete(model, ASKED, shown.append))
    assert not shown


@pytest.mark.parametrize(
    ("answer", "verdict"), [('{"verdict": "allow"}', None), ('{"verdict": "refuse"}', "j objects")]
)
def test_a_model_judges_by_rules(answer: str, verdict: str | None) -> None:
    asked: list[ModelRequest] = []

    def said(request: ModelRequest) -> str:
        asked.append(request)
        return answer

    judge = ModerationJudge(FakeModel(said, model="j"), "Mind sentences about cats.")
    assert judged(judge) == verdict
    (request,) = asked
    assert [message.content for message in request.messages] == [
        "Mind sentences about cats.",
        "a text",
    ]
    assert request.schema is not None


@pytest.mark.parametrize("answer", ["", "allow", "{}", "[]"])
def test_a_model_that_gives_no_verdict_lets_nothing_through(answer: str) -> None:
    with pytest.raises(ModelRequestError, match="could not judge"):
        judged(ModerationJudge(FakeModel(lambda _: answer)))
