from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.durability.calls.recorded_events import NODE, Tape, kinds
from weft.core.calls import CallEvent, ModelAnswered, ModelCalled, ModelStreamed, ModelTold
from weft.core.errors import ModelUnavailable
from weft.core.events import NodeFinished, Outcome
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Program,
    Sampling,
    Startable,
    TextDelta,
    Tokenizing,
    Warmable,
)
from weft.core.values import Completion, Lossy, Message, ToolSpec
from weft.durability.calls import RecordingClient
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

GREEDY = Sampling(temperature=0)
ASKED = ModelRequest((Message("user", "Say it."),), sampling=GREEDY)
TEXT = "one two three four five"
WORDS = ["one", " two", " three", " four", " five"]


async def ask(client: ModelClient, request: ModelRequest = ASKED) -> list[ModelEvent]:
    async with aclosing(client.generate(request)) as stream:
        return [event async for event in stream]


def of(tape: Tape, kind: type[Any]) -> list[Any]:
    return [event for event in tape.events if isinstance(event, kind)]


def broken_after(
    client: ModelClient, pieces: int, request: ModelRequest = ASKED
) -> list[CallEvent]:
    """The record of a part of a run that is cut off when so many pieces have come."""
    tape = Tape()
    recording = RecordingClient(client, "main", tape.log())

    async def main() -> None:
        async with aclosing(recording.generate(request)) as stream:
            for _ in range(pieces):
                await anext(stream)

    tape.run(main())
    return tape.events


class TestRecords:
    def test_a_call_its_pieces_and_its_answer_are_written(self) -> None:
        tape = Tape()
        inner = FakeModel([Reply("one two", per_token_s=0.5, first_token_s=1, prefill_s=0.25)])
        events = tape.run(ask(RecordingClient(inner, "main", tape.log())))
        told, called, *streamed, answered = tape.events
        assert told == ModelTold("main", ("is",), ("fake",), 0.0)
        assert isinstance(called, ModelCalled)
        assert (called.node, called.attempt, called.model) == (NODE, 1, "main")
        assert called.request == ASKED
        assert [
            piece for each in streamed if isinstance(each, ModelStreamed) for piece in each.deltas
        ] == [
            (0.25, Prefilled()),
            (1.25, TextDelta("one")),
            (1.75, TextDelta(" two")),
        ]
        assert isinstance(answered, ModelAnswered)
        assert answered.completion == events[-1]
        assert {called.call, answered.call} == {called.call}
        assert not tape.durable

    def test_ids_of_the_prompt_are_kept_where_the_client_tells(self) -> None:
        tape = Tape()
        client = RecordingClient(TokenModel(lambda *_: "yes"), "main", tape.log())
        tape.run(ask(client, ModelRequest(prompt_token_ids=(7, 8))))
        assert of(tape, ModelAnswered)[0].prompt_token_ids == (7, 8)

    def test_a_failure_is_written_and_raised(self) -> None:
        tape = Tape()
        inner = FakeModel([Reply(TEXT, break_after_tokens=2)])
        with pytest.raises(ModelUnavailable):
            tape.run(ask(RecordingClient(inner, "main", tape.log())))
        [answered] = of(tape, ModelAnswered)
        assert answered.completion is None
        assert answered.failure.error == "ModelUnavailable"
        assert len(of(tape, ModelStreamed)) == 2

    def test_how_urgent_a_call_is_makes_it_no_other_call(self) -> None:
        tape = Tape()
        client = RecordingClient(FakeModel(["a"]), "main", tape.log())

        async def main() -> None:
            await ask(client)
            await ask(client, replace(ASKED, priority=9, program=Program("x"), timeout_s=60))
            await ask(client, replace(ASKED, cache_prefix="p"))
            await ask(client, replace(ASKED, sampling=Sampling(temperature=0.5)))

        tape.run(main())
        first, second, third, other = [event.call for event in of(tape, ModelCalled)]
        assert [call.partition("#")[2] for call in (first, second, third)] == ["0", "1", "2"]
        assert other.partition("#")[0] != first.partition("#")[0]

    def test_what_a_tool_is_to_the_program_makes_it_no_other_call(self) -> None:
        tape = Tape()
        client = RecordingClient(FakeModel(["a"]), "main", tape.log())
        spec = ToolSpec("f", "F.", {"type": "object"})

        async def main() -> None:
            await ask(client, replace(ASKED, tools=(spec,)))
            await ask(client, replace(ASKED, tools=(replace(spec, version="2", effect="once"),)))
            await ask(client, replace(ASKED, tools=(replace(spec, description="G."),)))

        tape.run(main())
        first, second, other = [event.call.partition("#")[0] for event in of(tape, ModelCalled)]
        assert first == second != other

    def test_outside_of_a_run_nothing_is_written(self) -> None:
        tape = Tape()
        client = RecordingClient(FakeModel(["a"]), "main", tape.log())
        assert tape.clock.run(ask(client))
        tape.clock.run(client.capabilities())
        assert not tape.events

    def test_what_it_wraps_is_seen_through_it(self) -> None:
        log = Tape().log()

        class Ready(FakeModel):
            started = warmed = False

            async def start(self, show: Callable[[str], None] | None = None) -> None:
                self.started = True

            async def warm(self, request: ModelRequest) -> None:
                self.warmed = True

        ports = (Startable, Tokenizing, Warmable)
        plain = RecordingClient(FakeModel(["a"]), "main", log)
        assert [isinstance(plain, port) for port in ports] == [False, False, False]
        tokens = RecordingClient(TokenModel(lambda *_: ""), "main", log)
        assert [isinstance(tokens, port) for port in ports] == [False, True, False]
        inner = Ready(["a"])
        ready = RecordingClient(inner, "main", log)
        assert [isinstance(ready, port) for port in ports] == [True, False, True]
        assert isinstance(ready, Startable)
        assert isinstance(ready, Warmable)
        asyncio.run(ready.start())
        asyncio.run(ready.warm(ASKED))
        assert inner.started
        assert inner.warmed
        assert plain.model == "fake"
        assert type(plain) is RecordingClient
        assert isinstance(ready, RecordingClient)

    def test_what_a_client_says_is_written_once(self) -> None:
        tape = Tape()
        client = RecordingClient(TokenModel(lambda *_: ""), "main", tape.log())
        assert isinstance(client, Tokenizing)

        async def main() -> None:
            for _ in range(2):
                await client.capabilities()
                assert await client.encode("ab") == (97, 98)
                assert await client.decode((97,)) == "a"
                await client.encode_chat((Message("user", "a"),))
                await client.special_token("<x>")

        tape.run(main())
        assert [event.question[0] for event in of(tape, ModelTold)] == [
            *("is", "capabilities", "encode", "decode", "encode_chat", "special_token")
        ]
        later = Tape()
        again = RecordingClient(TokenModel(lambda *_: ""), "main", later.log(tape.events))
        later.run(again.capabilities())
        assert not later.events


class TestMemory:
    def test_an_answer_is_taken_from_the_record(self) -> None:
        tape = Tape()
        events = tape.run(ask(RecordingClient(FakeModel([TEXT]), "main", tape.log())))
        inner, later = FakeModel(["no"]), Tape()
        client = RecordingClient(inner, "main", later.log(tape.events))
        assert later.run(ask(client)) == events
        assert not inner.requests
        assert not later.events

    def test_for_its_attempt_only(self) -> None:
        """What was a bad answer in the first attempt is asked for again in the second."""
        tape = Tape()
        tape.run(ask(RecordingClient(FakeModel([TEXT]), "main", tape.log())))
        inner = FakeModel(["other"])
        client = RecordingClient(inner, "main", Tape().log(tape.events))
        tape.run(ask(client), attempt=2)
        tape.run(ask(client), node="other")
        assert len(inner.requests) == 2

    def test_a_failure_is_asked_for_again(self) -> None:
        tape = Tape()
        broken = FakeModel([Reply(error=ModelUnavailable("down"))])
        with pytest.raises(ModelUnavailable):
            tape.run(ask(RecordingClient(broken, "main", tape.log())))
        inner = FakeModel([TEXT])
        tape.run(ask(RecordingClient(inner, "main", Tape().log(tape.events))))
        assert len(inner.requests) == 1

    def test_a_node_that_ended_asks_afresh(self) -> None:
        tape = Tape()
        tape.run(ask(RecordingClient(FakeModel([TEXT]), "main", tape.log())))
        ended = NodeFinished(NODE, Outcome("failed"), 1.0)
        inner = FakeModel([TEXT])
        tape.run(ask(RecordingClient(inner, "main", Tape().log([*tape.events, ended]))))
        assert len(inner.requests) == 1


def continuing(request: ModelRequest) -> str:
    """A model that goes on with what it wrote before."""
    last = request.messages[-1]
    return TEXT[len(last.content) :] if last.role == "assistant" else TEXT


CONTINUES = Capabilities(continuation=True)


class TestContinuedByMessages:
    def client(self, **able: Any) -> FakeModel:
        return FakeModel(continuing, capabilities=Capabilities(**{"continuation": True, **able}))

    @pytest.mark.parametrize("pieces", [1, 2, 3, 4, 5])
    def test_it_goes_on_from_what_came(self, pieces: int) -> None:
        past = broken_after(self.client(), pieces)
        inner, tape = self.client(), Tape()
        *deltas, answer = tape.run(ask(RecordingClient(inner, "main", tape.log(past))))
        assert isinstance(answer, Completion)
        assert answer.text == TEXT
        assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == TEXT
        assert inner.requests[0].messages[-1] == Message("assistant", "".join(WORDS[:pieces]))
        # The received words are told without being asked for again.
        assert deltas[:pieces] == [TextDelta(word) for word in WORDS[:pieces]]
        assert tape.said
        assert "goes on" in tape.said[0][1]

    def test_what_the_record_has_then_is_the_whole_answer(self) -> None:
        past = broken_after(self.client(), 2)
        tape = Tape()
        events = tape.run(ask(RecordingClient(self.client(), "main", tape.log(past))))
        assert kinds(tape.events) == ["ModelStreamed"] * 3 + ["ModelAnswered"]
        later = Tape()
        nobody = FakeModel([Reply(error=ModelUnavailable("down"))])
        again = RecordingClient(nobody, "main", later.log([*past, *tape.events]))
        assert later.run(ask(again)) == events

    def test_usage_is_that_of_one_answer_in_two_requests(self) -> None:
        request = replace(ASKED, sampling=Sampling(temperature=0))
        [*_, whole] = Tape().run(ask(self.client(), request))
        past = broken_after(self.client(), 2, request)
        tape = Tape()
        [*_, answer] = tape.run(
            ask(RecordingClient(self.client(), "main", tape.log(past)), request)
        )
        assert isinstance(answer, Completion)
        assert isinstance(whole, Completion)
        assert answer.usage.requests == 2
        assert answer.usage.tokens == whole.usage.tokens

    def test_an_unfinished_answer_of_the_request_itself_grows(self) -> None:
        begun = ModelRequest((Message("user", "x"), Message("assistant", "one")), sampling=GREEDY)
        past = broken_after(self.client(), 1, begun)
        inner, tape = self.client(), Tape()
        *_, answer = tape.run(ask(RecordingClient(inner, "main", tape.log(past)), begun))
        assert isinstance(answer, Completion)
        assert answer.text == " two three four five"
        assert inner.requests[0].messages == (Message("user", "x"), Message("assistant", "one two"))

    @pytest.mark.parametrize(
        "request_",
        [
            replace(ASKED, sampling=Sampling(temperature=1, seed=3)),
            replace(ASKED, sampling=Sampling(temperature=0, max_tokens=9)),
            replace(ASKED, schema={"type": "object"}),
            replace(ASKED, tools=(ToolSpec("f", "F.", {"type": "object"}),)),
        ],
        ids=["seeded", "nobody counts tokens", "schema", "tools"],
    )
    def test_what_cannot_go_on_is_asked_for_again(self, request_: ModelRequest) -> None:
        able = {"structured_output": True, "tools": True}
        past = broken_after(self.client(**able), 2, request_)
        inner, tape = self.client(**able), Tape()
        *_, answer = tape.run(ask(RecordingClient(inner, "main", tape.log(past)), request_))
        assert isinstance(answer, Completion)
        assert answer.text == TEXT
        assert inner.requests == [request_]
        assert kinds(tape.events)[0] == "ModelCalled"

    def test_so_is_what_a_client_cannot_go_on_with(self) -> None:
        past = broken_after(FakeModel([TEXT]), 2)
        inner, tape = FakeModel([TEXT]), Tape()
        tape.run(ask(RecordingClient(inner, "main", tape.log(past))))
        assert inner.requests == [ASKED]

    def test_and_an_answer_that_thinks_or_has_no_text_yet(self) -> None:
        thinking = FakeModel([Reply(TEXT, reasoning="hm")], capabilities=CONTINUES)
        past = broken_after(thinking, 2)
        inner = FakeModel([TEXT], capabilities=CONTINUES)
        Tape().run(ask(RecordingClient(inner, "main", Tape().log(past))))
        assert inner.requests == [ASKED]

    def test_a_lossy_decoder_is_asked_again(self) -> None:
        class Able(FakeModel):
            def _check(self, request: ModelRequest) -> None:
                """It takes every decoder."""

        request = replace(ASKED, decode=Lossy("sloppy"))
        past = broken_after(Able(continuing, capabilities=CONTINUES), 2, request)
        inner = Able(continuing, capabilities=CONTINUES)
        tape = Tape()
        tape.run(ask(RecordingClient(inner, "main", tape.log(past)), request))
        assert inner.requests == [request]


def spelling(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply:
    """Writes TEXT after the opening of the answer, from wherever that has come to."""
    written = "".join(map(chr, (each for each in reversed(prompt) if each < 0x110000)))[::-1]
    begun = next((n for n in range(len(TEXT), 0, -1) if written.endswith(TEXT[:n])), 0)
    return TokenReply(TEXT[begun:])


class TestContinuedByIds:
    @pytest.mark.parametrize("limit", [None, 12])
    @pytest.mark.parametrize("pieces", range(2, 14))
    def test_it_comes_to_the_same_tokens(self, pieces: int, limit: int | None) -> None:
        request = replace(ASKED, sampling=Sampling(max_tokens=limit, temperature=0))
        [*_, whole] = Tape().run(ask(TokenModel(spelling), request))
        past = broken_after(TokenModel(spelling), pieces, request)
        inner, tape = TokenModel(spelling), Tape()
        client = RecordingClient(inner, "main", tape.log(past))
        *events, answer = tape.run(ask(client, request))
        assert isinstance(whole, Completion)
        assert isinstance(answer, Completion)
        assert (answer.text, answer.token_ids) == (whole.text, whole.token_ids)
        assert answer.finish_reason == whole.finish_reason
        assert answer.usage.tokens == whole.usage.tokens
        deltas = [event for event in events if isinstance(event, TextDelta)]
        assert "".join(delta.text for delta in deltas) == whole.text
        assert [type(event) for event in events].count(Prefilled) == 1
        if pieces - 1 < len(whole.text):
            [asked] = inner.requests
            assert asked.prompt_token_ids[-1] == ord(TEXT[pieces - 2])
            assert not asked.messages

    def test_ids_whose_text_has_not_come_are_not_taken_over(self) -> None:
        """Half a character, or what may begin a stop text: its tokens are written again."""
        past = broken_after(TokenModel(spelling), 4)
        for index, event in enumerate(past):
            if isinstance(event, ModelStreamed) and index == len(past) - 1:
                [(at_s, piece)] = event.deltas
                assert isinstance(piece, TextDelta)
                past[index] = replace(event, deltas=((at_s, replace(piece, text="")),))
        inner, tape = TokenModel(spelling), Tape()
        *_, answer = tape.run(ask(RecordingClient(inner, "main", tape.log(past))))
        assert isinstance(answer, Completion)
        assert answer.text == TEXT
        assert inner.requests[0].prompt_token_ids[-2:] == (ord("o"), ord("n"))
        # The record begins anew, without what was not taken over.
        assert kinds(tape.events)[:2] == ["ModelCalled", "ModelStreamed"]
        later = Tape()
        client = RecordingClient(TokenModel(spelling), "main", later.log([*past, *tape.events]))
        assert later.run(ask(client))[-1] == answer
        assert not later.events

    def test_a_prompt_of_ids_goes_on_as_one(self) -> None:
        request = ModelRequest(prompt_token_ids=(5, 6), sampling=GREEDY)
        past = broken_after(TokenModel(spelling), 3, request)
        inner = TokenModel(spelling)
        *_, answer = Tape().run(ask(RecordingClient(inner, "main", Tape().log(past)), request))
        assert isinstance(answer, Completion)
        assert answer.text == TEXT
        assert inner.requests[0].prompt_token_ids == (5, 6, ord("o"), ord("n"))
