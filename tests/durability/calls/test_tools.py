from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.durability.calls.recorded_events import NODE, Tape, kinds
from weft.core.call_context import current_key, idempotency_key
from weft.core.calls import ToolCalled, ToolReturned
from weft.core.errors import (
    EffectUnknown,
    NotDone,
    ToolArgumentError,
    ToolLimitError,
    ToolRaised,
    ToolResultError,
    WeftError,
)
from weft.core.events import NodeFinished, Outcome
from weft.core.ports import BatchRunner, ToolRunner
from weft.core.values import Effect, ToolSpec
from weft.durability.calls import Confirmation, RecordingTools, once_calls

PAY = {"amount": 3}


class Ledger:
    """A tool `pay` of some effect, over a function; `paid` lists the calls that came to it."""

    def __init__(self, effect: Effect, work: Callable[[int], Any] = str) -> None:
        self.effect: Effect = effect
        self.work = work
        self.paid: list[int] = []
        self.keys: list[str] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec("pay", "Pay.", {"type": "object"}, effect=self.effect, batch=9),)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        amount: int = arguments["amount"]
        self.paid.append(amount)
        self.keys.append(current_key())
        return self.work(amount)


class BatchLedger(Ledger):
    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        found: list[Any] = []
        for call in calls:
            try:
                found.append(await self.call(name, call))
            except WeftError as error:
                found.append(error)
        return found


def failing(error: Exception) -> Callable[[int], Any]:
    def work(_: int) -> Any:
        raise error

    return work


class TestRecords:
    def test_a_call_is_written_before_and_after(self) -> None:
        tape = Tape()
        tools = RecordingTools(Ledger("unknown"), tape.log())
        assert tape.run(tools.call("pay", PAY)) == "3"
        called, returned = tape.events
        assert isinstance(called, ToolCalled)
        assert isinstance(returned, ToolReturned)
        assert (called.node, called.attempt, called.tool, called.arguments) == (NODE, 1, "pay", PAY)
        assert called.call == returned.call
        assert called.call.startswith("tool:")
        assert called.call.endswith("#0")
        assert (returned.value, returned.failure, returned.done) == ("3", None, "done")
        assert not tape.durable

    def test_equal_calls_are_counted_and_others_are_not(self) -> None:
        tape = Tape()
        tools = RecordingTools(Ledger("unknown"), tape.log())

        async def main() -> None:
            await tools.call("pay", PAY)
            await tools.call("pay", {"amount": 4})
            await tools.call("pay", PAY)

        tape.run(main())
        first, other, second = [e.call for e in tape.events if isinstance(e, ToolCalled)]
        assert first.partition("#")[0] == second.partition("#")[0] != other.partition("#")[0]
        assert [call.partition("#")[2] for call in (first, other, second)] == ["0", "0", "1"]

    def test_outside_of_a_run_nothing_is_written(self) -> None:
        tape = Tape()
        tools = RecordingTools(Ledger("once"), tape.log())
        assert tape.clock.run(tools.call("pay", PAY)) == "3"
        assert not tape.events

    def test_what_it_wraps_is_seen_through_it(self) -> None:
        log = Tape().log()
        assert not isinstance(RecordingTools(Ledger("once"), log), BatchRunner)
        assert isinstance(RecordingTools(BatchLedger("once"), log), BatchRunner)
        assert RecordingTools(Ledger("once"), log).specs() == Ledger("once").specs()
        assert RecordingTools(Ledger("once"), log).resource("pay") is None

    def test_tools_of_a_server_are_listed_once(self) -> None:
        tape = Tape()
        tools = RecordingTools(Ledger("once"), tape.log(), "bank")
        assert tape.run(tools.listed()) == tape.run(tools.listed()) == Ledger("once").specs()
        assert kinds(tape.events) == ["ToolsListed"]


class TestMemory:
    """What an earlier part of a run knows is not done again."""

    def test_a_result_is_taken_from_the_record(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("unknown"), tape.log()).call("pay", PAY))
        again = Ledger("unknown", failing(AssertionError()))
        later = Tape()
        assert later.run(RecordingTools(again, later.log(tape.events)).call("pay", PAY)) == "3"
        assert not again.paid
        assert not later.events

    def test_another_attempt_node_or_argument_is_another_call(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("unknown"), tape.log()).call("pay", PAY))
        again = Ledger("unknown")
        tools = RecordingTools(again, Tape().log(tape.events))
        tape.run(tools.call("pay", PAY), attempt=2)
        tape.run(tools.call("pay", PAY), node="other")
        tape.run(tools.call("pay", {"amount": 4}))
        assert again.paid == [3, 3, 4]

    def test_a_second_equal_call_is_made(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("unknown"), tape.log()).call("pay", PAY))
        again = Ledger("unknown")
        tools = RecordingTools(again, tape.log(list(tape.events)))
        tape.run(tools.call("pay", PAY))
        tape.run(tools.call("pay", PAY))
        assert again.paid == [3]

    @pytest.mark.parametrize("effect", ["pure", "idempotent", "unknown"])
    def test_what_failed_or_never_ended_is_called_again(self, effect: Effect) -> None:
        tape = Tape()
        broken = Ledger(effect, failing(ToolRaised("no")))
        with pytest.raises(ToolRaised):
            tape.run(RecordingTools(broken, tape.log()).call("pay", PAY))
        for past in (tape.events, tape.events[:1]):
            again = Ledger(effect)
            tape.run(RecordingTools(again, Tape().log(past)).call("pay", PAY))
            assert again.paid == [3]

    def test_a_node_that_ended_and_runs_again_does_it_afresh(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("unknown"), tape.log()).call("pay", PAY))
        ended = NodeFinished(NODE, Outcome("failed"), 1.0)
        again = Ledger("unknown")
        tape.run(RecordingTools(again, Tape().log([*tape.events, ended])).call("pay", PAY))
        assert again.paid == [3]


class TestOnce:
    def test_intent_and_result_are_durable(self) -> None:
        tape = Tape()
        ledger = Ledger("once", lambda _: kinds(tape.durable))
        assert tape.run(RecordingTools(ledger, tape.log()).call("pay", PAY)) == ["ToolCalled"]
        assert kinds(tape.durable) == ["ToolCalled", "ToolReturned"]

    def test_where_the_intent_cannot_be_kept_the_tool_is_not_called(self) -> None:
        tape, ledger = Tape(), Ledger("once")
        log = tape.log()

        async def write(*_: object) -> None:
            raise OSError("no space left on device")

        log._write = write
        with pytest.raises(OSError, match="no space"):
            tape.run(RecordingTools(ledger, log).call("pay", PAY))
        assert not ledger.paid

    def test_a_later_attempt_gets_the_result_of_an_earlier_one(self) -> None:
        tape, ledger = Tape(), Ledger("once")
        tools = RecordingTools(ledger, tape.log())
        assert tape.run(tools.call("pay", PAY), attempt=1) == "3"
        assert tape.run(tools.call("pay", PAY), attempt=2) == "3"
        assert ledger.paid == [3]

    def test_so_does_an_attempt_of_what_the_node_is_inside(self) -> None:
        tape, ledger = Tape(), Ledger("once")
        tools = RecordingTools(ledger, tape.log())
        for node in ("agent/s1", "agent~2/s1", "agent~3/s1"):
            assert tape.run(tools.call("pay", PAY), node=node) == "3"
        assert ledger.paid == [3]
        tape.run(tools.call("pay", PAY), node="agent[2]/s1")
        assert ledger.paid == [3, 3]
        intent = tape.events[0]
        said = {"agent~2/s1": Confirmation("done")}
        again = RecordingTools(ledger, Tape().log([intent], said))
        assert tape.run(again.call("pay", PAY), node="agent~3/s1") is None
        [told, _] = once_calls(tape.events)
        assert (told.node, told.done) == ("agent/s1", "done")

    def test_so_does_a_later_part_even_where_the_node_has_ended(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("once"), tape.log()).call("pay", PAY), attempt=2)
        again = Ledger("once")
        ended = NodeFinished(NODE, Outcome("failed"), 1.0)
        tools = RecordingTools(again, tape.log([*tape.events, ended]))
        assert tape.run(tools.call("pay", PAY)) == "3"
        assert not again.paid

    @pytest.mark.parametrize(
        "error", [ToolRaised("lost"), ToolLimitError("late", retryable=True), OSError("gone")]
    )
    def test_a_failure_that_may_have_acted_is_not_repeated(self, error: Exception) -> None:
        tape, ledger = Tape(), Ledger("once", failing(error))
        tools = RecordingTools(ledger, tape.log())
        with pytest.raises(type(error)):
            tape.run(tools.call("pay", PAY))
        with pytest.raises(EffectUnknown, match="whether pay was carried out") as unknown:
            tape.run(tools.call("pay", PAY), attempt=2)
        assert ledger.paid == [3]
        assert not unknown.value.retryable
        assert str(error) in unknown.value.message
        assert "--confirm pay=done:JSON" in str(unknown.value)

    def test_nor_is_an_intent_without_an_end(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("once"), tape.log()).call("pay", PAY))
        again = Ledger("once")
        tools = RecordingTools(again, Tape().log(tape.events[:1]))
        with pytest.raises(EffectUnknown):
            tape.run(tools.call("pay", PAY))
        assert not again.paid

    @pytest.mark.parametrize("error", [NotDone("declined"), ToolArgumentError("no amount")])
    def test_what_says_that_nothing_happened_may_be_repeated(self, error: Exception) -> None:
        tape = Tape()
        ledger = Ledger("once", failing(error))
        tools = RecordingTools(ledger, tape.log())
        with pytest.raises(type(error)):
            tape.run(tools.call("pay", PAY))
        ledger.work = str
        assert tape.run(tools.call("pay", PAY), attempt=2) == "3"
        assert ledger.paid == [3, 3]

    def test_a_bad_result_is_a_result_all_the_same(self) -> None:
        tape = Tape()
        ledger = Ledger("once", failing(ToolResultError("pay: no receipt", hint="look")))
        tools = RecordingTools(ledger, tape.log())
        for attempt in (1, 2):
            with pytest.raises(ToolResultError, match="no receipt") as raised:
                tape.run(tools.call("pay", PAY), attempt=attempt)
            assert raised.value.hint == "look"
        assert ledger.paid == [3]

    def test_cancelled_on_its_way_it_is_unknown(self) -> None:
        tape = Tape()
        ledger = Ledger("once")

        class Slow(Ledger):
            async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
                self.paid.append(1)
                await asyncio.Event().wait()

        slow = Slow("once")
        log = tape.log()

        async def main() -> None:
            task = asyncio.ensure_future(RecordingTools(slow, log).call("pay", PAY))
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        tape.run(main())
        with pytest.raises(EffectUnknown):
            tape.run(RecordingTools(ledger, log).call("pay", PAY), attempt=2)
        assert not ledger.paid

    def test_cancelled_before_its_way_it_is_not_done(self) -> None:
        tape, ledger = Tape(), Ledger("once")
        log = tape.log()

        async def main() -> None:
            task = asyncio.ensure_future(RecordingTools(ledger, log).call("pay", PAY))
            await asyncio.sleep(0)  # the intent is being written
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        tape.run(main())
        assert not ledger.paid
        assert tape.run(RecordingTools(ledger, log).call("pay", PAY), attempt=2) == "3"

    @pytest.mark.parametrize("place", ["pay", "pay@{call}"])
    def test_a_person_may_say_that_it_is_done(self, place: str) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("once"), tape.log()).call("pay", PAY))
        [intent, _] = tape.events
        assert isinstance(intent, ToolCalled)
        said = {place.format(call=intent.call): Confirmation("done", "by hand")}
        again = Ledger("once")
        tools = RecordingTools(again, tape.log([intent], said))
        assert tape.run(tools.call("pay", PAY)) == "by hand"
        assert tape.run(tools.call("pay", PAY), attempt=2) == "by hand"
        assert not again.paid
        assert [call.done for call in once_calls([intent, *tape.events])] == ["done"]

    def test_or_that_it_may_be_repeated_which_holds_once(self) -> None:
        tape = Tape()
        tape.run(RecordingTools(Ledger("once"), tape.log()).call("pay", PAY))
        again = Ledger("once", failing(ToolRaised("lost")))
        said = {"pay": Confirmation("repeat")}
        tools = RecordingTools(again, Tape().log(tape.events[:1], said))
        with pytest.raises(ToolRaised):
            tape.run(tools.call("pay", PAY))
        with pytest.raises(EffectUnknown):
            tape.run(tools.call("pay", PAY), attempt=2)
        assert again.paid == [3]


class TestKeys:
    def test_an_idempotent_tool_gets_one_key_however_often_it_is_called(self) -> None:
        tape = Tape()
        ledger = Ledger("idempotent", failing(ToolRaised("lost")))
        for _ in range(2):  # two parts
            tools = RecordingTools(ledger, tape.log(list(tape.events)))
            for attempt in (1, 2):
                with pytest.raises(ToolRaised):
                    tape.run(tools.call("pay", PAY), attempt=attempt)
        with pytest.raises(ToolRaised):
            tape.run(tools.call("pay", PAY), node="in~2/pay")
        with pytest.raises(ToolRaised):
            tape.run(tools.call("pay", PAY), node="in/pay")
        *outside, inside, first = ledger.keys
        assert len(outside) == 4
        assert len(set(outside)) == 1
        assert len(first) == 32
        assert inside == first != outside[0]

    def test_others_get_none_and_every_call_has_its_own(self) -> None:
        tape, ledger = Tape(), Ledger("idempotent")
        tools = RecordingTools(ledger, tape.log())
        tape.run(tools.call("pay", PAY))
        tape.run(tools.call("pay", PAY))
        tape.run(tools.call("pay", {"amount": 4}))
        tape.run(tools.call("pay", PAY), node="other")
        assert len(set(ledger.keys)) == 4
        for effect in ("pure", "once", "unknown"):
            other = Ledger(effect)
            tape.run(RecordingTools(other, tape.log()).call("pay", PAY))
            assert other.keys == [""]

    def test_outside_of_a_run_each_key_is_new(self) -> None:
        assert len({idempotency_key(), idempotency_key()}) == 2


class TestBatches:
    def runner(self, inner: ToolRunner, tape: Tape) -> Any:
        return RecordingTools(inner, tape.log(list(tape.events)))

    def test_each_call_is_recorded_and_only_what_is_unknown_is_made(self) -> None:
        tape = Tape()
        tape.run(self.runner(BatchLedger("unknown"), tape).call("pay", PAY))
        again = BatchLedger("unknown")
        calls = [{"amount": 4}, PAY, {"amount": 5}]
        found = tape.run(self.runner(again, tape).call_batch("pay", calls))
        assert list(found) == ["4", "3", "5"]
        assert again.paid == [4, 5]
        assert len(tape.events) == 6

    def test_an_unknown_end_is_the_failure_of_that_call_alone(self) -> None:
        tape = Tape()
        tape.run(self.runner(BatchLedger("once"), tape).call("pay", PAY))
        del tape.events[1]
        again = BatchLedger("once")
        found = tape.run(self.runner(again, tape).call_batch("pay", [PAY, {"amount": 4}]))
        assert isinstance(found[0], EffectUnknown)
        assert found[1] == "4"
        assert again.paid == [4]

    def test_a_failure_alone_and_one_of_all(self) -> None:
        tape = Tape()
        runner = self.runner(BatchLedger("once", failing(ToolRaised("no"))), tape)
        found = tape.run(runner.call_batch("pay", [PAY, PAY]))
        assert all(isinstance(each, ToolRaised) for each in found)

        class Broken(BatchLedger):
            async def call_batch(self, name: str, calls: Any) -> Any:
                raise ToolLimitError("too late")

        with pytest.raises(ToolLimitError):
            tape.run(self.runner(Broken("once"), Tape()).call_batch("pay", [PAY, PAY]))
        done = [event.done for event in tape.events if isinstance(event, ToolReturned)]
        assert done == ["unknown", "unknown"]

    def test_outside_of_a_run_it_passes(self) -> None:
        tape = Tape()
        assert tape.clock.run(self.runner(BatchLedger("once"), tape).call_batch("pay", [PAY])) == [
            "3"
        ]
        assert not tape.events


def test_the_table_of_once_calls() -> None:
    tape = Tape()
    outcomes: dict[int, Any] = {1: "receipt", 2: NotDone("declined"), 3: ToolRaised("lost")}

    def work(amount: int) -> Any:
        if isinstance(outcomes[amount], Exception):
            raise outcomes[amount]
        return outcomes[amount]

    tools = RecordingTools(Ledger("once", work), tape.log())
    for amount in (1, 2, 3):
        tape.clock.advance(1)
        task = tools.call("pay", {"amount": amount})
        if amount == 1:
            tape.run(task)
        else:
            with pytest.raises(ToolRaised):
                tape.run(task)
    tape.run(RecordingTools(Ledger("unknown"), tape.log()).call("pay", PAY), node="other")
    told = once_calls(tape.events[:-1])
    assert [(call.arguments["amount"], call.done) for call in told] == [
        (1, "done"),
        (2, "not done"),
        (3, "unknown"),
    ]
    assert told[2].failure is not None
    outcomes[2] = "second thoughts"
    tape.clock.advance(1)
    tape.run(tools.call("pay", {"amount": 2}), attempt=2)
    assert [call.done for call in once_calls(tape.events)] == ["done", "unknown", "done"]


class Typed(Ledger):
    """Says what it returns."""

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(replace(spec, result={"type": "string"}) for spec in super().specs())


def test_what_a_tool_cannot_have_returned_is_no_word() -> None:
    tape = Tape()
    tape.run(RecordingTools(Ledger("once"), tape.log()).call("pay", PAY))
    again = Typed("once")
    for value in (None, 7):
        refused = Tape()
        said = {"pay": Confirmation("done", value)}
        tools = RecordingTools(again, refused.log(tape.events[:1], said))
        with pytest.raises(EffectUnknown, match="cannot have returned") as unknown:
            refused.run(tools.call("pay", PAY))
        assert '{"type": "string"}' in str(unknown.value)
        assert not refused.events
    said = {"pay": Confirmation("done", "by hand")}
    tools = RecordingTools(again, Tape().log(tape.events[:1], said))
    assert tape.run(tools.call("pay", PAY)) == "by hand"
    assert not again.paid
