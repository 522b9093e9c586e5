from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.durability.calls.recorded_events import NODE, Tape, at
from tests.durability.calls.test_client import ASKED, TEXT, ask, broken_after
from tests.durability.calls.test_tools import PAY, Ledger, failing
from weft.core.calls import CallEvent, ToolReturned
from weft.core.errors import (
    CassetteMiss,
    ModelOverloaded,
    ModelUnavailable,
    NotDone,
    ToolRaised,
)
from weft.core.events import NodeFinished, Outcome
from weft.core.ids import RunId
from weft.core.ports import BatchRunner, ModelEvent, Startable, Tokenizing
from weft.core.ports.journal import Record, RunHeader
from weft.core.values import Message, ToolSpec
from weft.durability.calls import (
    Cassette,
    CassettePlayer,
    RecordingClient,
    RecordingTools,
    RecordRedactor,
    Redactor,
    ReplayingClient,
    ReplayingTools,
)
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryJournal, Reply, TokenModel

REPLY = Reply(TEXT, first_token_s=1.0, per_token_s=0.5, prefill_s=0.25)


class Stage:
    """A cassette that is played in virtual time."""

    def __init__(self, records: list[Any], *, strict: bool = False, begin_s: float = 0.0) -> None:
        self.clock = FakeClock()
        self.cassette = Cassette(records, strict=strict)
        self.player = CassettePlayer(self.cassette, lambda: self.clock.now() + begin_s, self.clock)

    def model(self, name: str = "main") -> ReplayingClient:
        return ReplayingClient(self.player, name)

    def tools(self) -> ReplayingTools:
        return ReplayingTools(self.player)

    def run(self, main: Any, node: str = NODE, attempt: int = 1) -> Any:
        async def work() -> Any:
            with at(node, attempt):
                return await main

        return self.clock.run(work())


def through_a_journal(events: list[CallEvent]) -> list[Record]:
    """What a journal gives back of `events`."""
    journal, run, keep = MemoryJournal(), RunId("r"), RecordRedactor(Redactor())
    with_claim = journal.begin(RunHeader(run, "f", "2026-01-01", "0"))
    journal.append(run, [kept for event in events for kept in keep(event)])
    with_claim.release()
    return [numbered.record for numbered in journal.records(run)]


async def timed(tape: Tape | Stage, client: Any) -> list[tuple[float, ModelEvent]]:
    # A turn of the replay takes a microsecond, so times are compared to the millisecond.
    return [(round(tape.clock.now(), 3), event) async for event in client.generate(ASKED)]


class TestModels:
    def test_the_same_events_come_at_the_same_times(self) -> None:
        tape = Tape()
        client = RecordingClient(FakeModel([REPLY]), "main", tape.log())
        there = tape.run(timed(tape, client))
        stage = Stage(through_a_journal(tape.events))
        assert stage.run(timed(stage, stage.model())) == there
        assert there[-1][0] == 0.25 + 1.0 + 5 * 0.5

    def test_what_comes_too_late_comes_at_once(self) -> None:
        tape = Tape()
        tape.run(ask(RecordingClient(FakeModel([REPLY]), "main", tape.log())))
        stage = Stage(tape.events, begin_s=100.0)
        assert stage.run(ask(stage.model()))
        assert stage.clock.now() == pytest.approx(0.0, abs=1e-3)

    def test_answers_of_one_request_come_in_their_order(self) -> None:
        tape = Tape()
        client = RecordingClient(FakeModel(["a", "b", "c"]), "main", tape.log())

        async def thrice(client: Any) -> list[Any]:
            return [(await ask(client))[-1] for _ in range(3)]

        there = tape.run(thrice(client))
        stage = Stage(tape.events)
        assert stage.run(thrice(stage.model())) == there

    @pytest.mark.parametrize(
        "error",
        [ModelUnavailable("down", hint="look"), ModelOverloaded("busy", retry_after_s=7.0)],
    )
    def test_failures_are_played_too(self, error: Any) -> None:
        tape = Tape()
        with pytest.raises(type(error)):
            tape.run(ask(RecordingClient(FakeModel([Reply(error=error)]), "main", tape.log())))
        stage = Stage(through_a_journal(tape.events))
        with pytest.raises(type(error)) as raised:
            stage.run(ask(stage.model()))
        assert raised.value.failure() == error.failure()
        assert getattr(raised.value, "retry_after_s", None) == getattr(error, "retry_after_s", None)

    def test_a_stream_that_broke_off_breaks_off_there(self) -> None:
        tape = Tape()
        inner = FakeModel([replace(REPLY, break_after_tokens=2)])
        with pytest.raises(ModelUnavailable):
            tape.run(ask(RecordingClient(inner, "main", tape.log())))
        stage, seen = Stage(tape.events), []

        async def main() -> None:
            async for event in stage.model().generate(ASKED):
                seen.append(event)

        with pytest.raises(ModelUnavailable, match="broke off"):
            stage.run(main())
        assert len(seen) == 3

    def test_a_call_without_an_end_waits_for_whoever_ends_it(self) -> None:
        past = broken_after(FakeModel([REPLY]), 3)
        stage = Stage(past)

        async def main() -> None:
            task = asyncio.ensure_future(ask(stage.model()))
            await stage.clock.sleep(1.9)
            assert not task.done()
            task.cancel()

        stage.run(main())
        stage = Stage(past)
        with pytest.raises(CassetteMiss, match="no end"):
            stage.run(ask(stage.model()))

    def test_the_client_is_what_it_was(self) -> None:
        tape = Tape()
        client = RecordingClient(TokenModel(lambda *_: "x", model="m"), "main", tape.log())
        assert isinstance(client, Tokenizing)

        async def told(client: Any) -> Any:
            return (
                client.model,
                await client.capabilities(),
                await client.encode("ab", special=True),
                await client.encode_chat((Message("user", "hi"),)),
                await client.decode((97, 98)),
                await client.special_token("<none>"),
            )

        there = tape.run(told(client))
        stage = Stage(through_a_journal(tape.events))
        again = stage.model()
        assert stage.run(told(again)) == there
        assert isinstance(again, Tokenizing)
        assert not isinstance(again, Startable)
        with pytest.raises(CassetteMiss, match="encode"):
            stage.run(again.encode("something else"))
        assert not isinstance(stage.model("other"), Tokenizing)
        assert stage.model("other").model == "other"

    def test_outside_of_a_run_there_is_no_record(self) -> None:
        stage = Stage([])
        with pytest.raises(CassetteMiss, match="outside"):
            stage.clock.run(ask(stage.model()))


class TestTools:
    def test_results_and_failures_come_at_their_times(self) -> None:
        tape = Tape()

        async def slow(amount: int) -> dict[str, int]:
            await asyncio.sleep(amount)
            if amount == 2:
                raise ToolRaised("no", retryable=True)
            return {"paid": amount}

        async def both(clock: FakeClock, tools: Any) -> list[Any]:
            made = [asyncio.ensure_future(tools.call("pay", {"amount": n})) for n in (3, 2)]
            await asyncio.wait(made)
            return [round(clock.now(), 3), made[0].result(), made[1].exception()]

        there = tape.run(both(tape.clock, RecordingTools(FakeTools(pay=slow), tape.log())))
        stage = Stage(through_a_journal(tape.events))
        now_s, value, error = stage.run(both(stage.clock, stage.tools()))
        assert (now_s, value) == (3.0, {"paid": 3}) == tuple(there[:2])
        assert isinstance(error, ToolRaised)
        assert error.failure() == there[2].failure()

    def test_a_tool_that_was_not_called_twice_is_not_played_twice_either(self) -> None:
        """The second attempt got the result of the first, and no record of its own."""
        tape = Tape()
        tools = RecordingTools(Ledger("once"), tape.log())
        tape.run(tools.call("pay", PAY), attempt=1)
        tape.run(tools.call("pay", PAY), attempt=2)
        stage = Stage(tape.events)
        assert stage.run(stage.tools().call("pay", PAY), attempt=1) == "3"
        assert stage.run(stage.tools().call("pay", PAY), attempt=2) == "3"
        assert not stage.cassette.drifts

    def test_parts_of_a_run_are_one_record(self) -> None:
        tape = Tape()
        with pytest.raises(ToolRaised):
            tape.run(
                RecordingTools(Ledger("pure", failing(ToolRaised("x"))), tape.log()).call(
                    "pay", PAY
                )
            )
        tape.run(RecordingTools(Ledger("pure"), tape.log(list(tape.events))).call("pay", PAY))
        stage = Stage(tape.events)
        assert stage.run(stage.tools().call("pay", PAY)) == "3"

    def test_batches(self) -> None:
        tape = Tape()
        ledger = Ledger("unknown", lambda amount: failing(NotDone("no"))(0) if amount == 4 else 1)
        tools = RecordingTools(ledger, tape.log())
        for amount in (3, 4):
            try:
                tape.run(tools.call("pay", {"amount": amount}))
            except NotDone:
                assert amount == 4
        stage = Stage(tape.events)
        again = stage.tools()
        assert isinstance(again, BatchRunner)
        one, other = stage.run(again.call_batch("pay", [PAY, {"amount": 4}]))
        assert one == 1
        assert isinstance(other, NotDone)

    def test_a_server_has_the_tools_that_it_had(self) -> None:
        tape = Tape()
        specs = tape.run(RecordingTools(Ledger("once"), tape.log(), "bank").listed())
        stage = Stage(through_a_journal(tape.events))
        assert ReplayingTools(stage.player, source="bank").specs() == specs
        own = (ToolSpec("own", "", {}),)
        assert ReplayingTools(stage.player, lambda: own).specs() == own
        assert ReplayingTools(stage.player, lambda: own, "shop").specs() == own

    def test_a_result_that_could_not_be_kept_is_not_played(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("once", lambda _: object()), tape.log()).call("pay", PAY))
        stage = Stage(through_a_journal(tape.events))
        with pytest.raises(CassetteMiss, match="likeness"):
            stage.run(stage.tools().call("pay", PAY))


def recorded(arguments: Mapping[str, Any] = PAY, calls: int = 1) -> list[CallEvent]:
    tape = Tape()
    tools = RecordingTools(Ledger("unknown"), tape.log())

    async def main() -> None:
        for _ in range(calls):
            await tools.call("pay", arguments)

    tape.run(main())
    return tape.events


class TestDrift:
    def test_another_call_gets_the_next_recorded_one_and_is_reported(self) -> None:
        told: list[Any] = []
        stage = Stage(recorded())
        stage.cassette._on_drift = told.append
        assert stage.run(stage.tools().call("pay", {"amount": 5, "to": "x"})) == "3"
        [drift] = stage.cassette.drifts
        assert told == [drift]
        assert str(drift) == (
            "pay: the tool pay: argument amount: [-3-]{+5+}; argument to is new: x"
        )

    def test_when_strict_it_is_a_miss_that_says_what_changed(self) -> None:
        stage = Stage(recorded(), strict=True)
        with pytest.raises(CassetteMiss, match=r"amount: \[-3-\]\{\+5\+\}"):
            stage.run(stage.tools().call("pay", {"amount": 5}))

    @pytest.mark.parametrize("place", [("other", 1), (NODE, 2)])
    def test_a_call_where_none_was_is_a_miss(self, place: tuple[str, int]) -> None:
        stage = Stage(recorded())
        with pytest.raises(CassetteMiss, match="no call of tools") as miss:
            stage.run(stage.tools().call("pay", PAY), *place)
        assert "--from" in str(miss.value)

    def test_one_call_too_many_is_a_miss(self) -> None:
        stage = Stage(recorded(calls=2))

        async def thrice() -> None:
            for _ in range(3):
                await stage.tools().call("pay", PAY)

        with pytest.raises(CassetteMiss, match="2 calls of tools, all of them played"):
            stage.run(thrice())

    def test_the_same_tool_is_preferred(self) -> None:
        tape = Tape()
        tools = RecordingTools(FakeTools(find=lambda q: "f", pay=lambda q: "p"), tape.log())
        tape.run(tools.call("find", {"q": 1}))
        tape.run(tools.call("pay", {"q": 1}))
        stage = Stage(tape.events)
        assert stage.run(stage.tools().call("pay", {"q": 2})) == "p"
        assert stage.run(stage.tools().call("seek", {"q": 1})) == "f"
        assert stage.cassette.drifts[1].changes == ("it is seek, not find",)

    def test_what_the_model_is_asked_otherwise_is_told(self) -> None:
        tape = Tape()
        tape.run(ask(RecordingClient(FakeModel([TEXT]), "main", tape.log())))
        stage = Stage(tape.events)
        asked = replace(ASKED, messages=(Message("user", "Say it now."),))
        assert stage.run(ask(stage.model("other"), asked))[-1].text == TEXT
        assert str(stage.cassette.drifts[0]) == (
            "pay: the model other: the model is other, not main; message 1 (user): Say it{+ now+}."
        )

    def test_what_is_not_asked_any_more_is_told_at_the_end(self) -> None:
        tape = Tape()
        tape.run(ask(RecordingClient(FakeModel([TEXT]), "main", tape.log())))
        stage = Stage([*recorded(calls=2), *tape.events])
        stage.run(stage.tools().call("pay", PAY))
        assert [str(drift) for drift in stage.cassette.left()] == [
            "pay: the tool pay: it is not asked any more",
            "pay: the model main: it is not asked any more",
        ]
        assert not stage.cassette.drifts

    def test_called_more_often_with_other_words(self) -> None:
        stage = Stage([*recorded(), *recorded({"amount": 9})])

        async def twice() -> list[Any]:
            return [await stage.tools().call("pay", PAY) for _ in range(2)]

        assert stage.run(twice()) == ["3", "9"]
        assert stage.cassette.drifts[0].changes == ("argument amount: [-9-]{+3+}",)


def test_a_secret_of_another_machine_is_no_drift() -> None:
    tape = Tape()
    here, there = Redactor({"KEY": "secret-here"}), Redactor({"KEY": "another-there"})
    tools = RecordingTools(FakeTools(get=lambda key: f"got {key}"), tape.log(redactor=here))
    tape.run(tools.call("get", {"key": "secret-here"}))
    keep = RecordRedactor(here)
    records = [kept for event in tape.events for kept in keep(event)]
    clock = FakeClock()
    cassette = Cassette(records, redactor=there, strict=True)
    replayed = ReplayingTools(CassettePlayer(cassette, clock.now, clock))

    async def main() -> Any:
        with at(NODE):
            return await replayed.call("get", {"key": "another-there"})

    assert clock.run(main()) == "got another-there"


def test_the_end_of_the_record_is_that_of_its_last_event() -> None:
    ended = NodeFinished(NODE, Outcome("succeeded"), 7.5)
    assert Cassette([*recorded(), ended]).ended_s == 7.5
    assert isinstance(recorded()[-1], ToolReturned)
