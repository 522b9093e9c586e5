"""Calls whose end nobody knows: found in records, and settled by words on one of them."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House
from weft.core.calls import ToolCalled
from weft.core.errors import InputError
from weft.core.ids import NodeId
from weft.core.ports.journal import Letter
from weft.durability.calls import Confirmation
from weft.workflow import FlowResult
from weft.workflow.history.unsettled_calls import UnsettledCall, confirmation_in, unsettled_calls

PAID = {"a": ["paid 1", "paid 2"]}


class Till:
    """Pays two amounts, each by a call that must not be repeated; those of `hangs` hang."""

    def __init__(self, *hangs: int) -> None:
        self.hangs = set(hangs)
        self.ledger: list[int] = []
        self.flow = loads(
            "  a: {map: [1, 2], as: n, do: {tool: search, with: {amount: '{{ n }}'}}}"
        )
        self.house = House(search=self.pay)
        self.house.effect = "once"

    async def pay(self, amount: int) -> str:
        self.ledger.append(amount)
        await asyncio.sleep(5.0 if amount in self.hangs else 0.0)
        return f"paid {amount}"

    def open(self) -> list[UnsettledCall]:
        return list(unsettled_calls(self.house.story().records))

    def say(self, call: UnsettledCall, said: str, value: object = None) -> None:
        """What the page sends."""
        record = call.called.record
        assert isinstance(record, ToolCalled)
        word = {"call": call.called.seq, "said": said, "value": value}
        story = self.house.story()
        self.house.journal.send(story.run, Letter("confirm", record.node, word))

    def resume(self, **more: object) -> FlowResult:
        return self.house.resume(self.flow, **more)  # type: ignore[arg-type]


def left(*hangs: int) -> Till:
    till = Till(*hangs)
    till.house.left(till.flow, 1.0)
    till.hangs.clear()
    return till


def test_only_calls_whose_end_nobody_knows_are_open() -> None:
    till = left(2)
    (call,) = till.open()
    record = call.called.record
    assert isinstance(record, ToolCalled)
    assert (record.node, record.arguments) == (NodeId("a[1]"), {"amount": 2})
    assert (call.ended, call.lost) == (None, False)
    assert call.where == f"a[1]@{record.call}"


def test_each_call_gets_its_own_word() -> None:
    till = left(1, 2)
    first, second = till.open()
    till.say(first, "repeat")
    till.say(second, "done", "paid by hand")
    assert till.resume().outputs == {"a": ["paid 1", "paid by hand"]}
    assert till.ledger == [1, 2, 1]
    assert till.open() == []


def test_a_word_does_not_count_for_the_repetition() -> None:
    """The call that was repeated on it may have acted: that is another question."""
    till = left(2)
    (call,) = till.open()
    till.say(call, "repeat")
    till.hangs.add(2)
    till.house.wait(lambda: till.flow.resume("last", **till.house.settings()), pause_s=1.0)
    assert till.ledger == [1, 2, 2]
    till.hangs.clear()
    assert "nobody knows whether" in till.resume().missing["a"]
    assert till.ledger == [1, 2, 2]
    (again,) = till.open()
    assert again.called.seq > call.called.seq
    till.say(again, "repeat")
    assert till.resume().outputs == PAID
    assert till.ledger == [1, 2, 2, 2]


def test_who_resumes_the_run_has_the_last_word() -> None:
    till = left(2)
    (call,) = till.open()
    till.say(call, "repeat")
    word = {"a[1]": Confirmation("done", "seen in the books")}
    assert till.resume(confirmed=word).outputs == {"a": ["paid 1", "seen in the books"]}
    assert till.ledger == [1, 2]


def test_a_letter_that_says_something_else_is_no_word() -> None:
    (call,) = left(2).open()
    node, seq = NodeId("a[1]"), call.called.seq
    assert confirmation_in(Letter("confirm", node, {"call": seq, "said": "repeat"}), [call])
    for value in (
        None,
        7,
        ["repeat"],
        {},
        {"call": seq},
        {"call": seq, "said": "perhaps"},
        {"call": seq, "said": ["done"]},
        {"call": seq + 1, "said": "repeat"},
        {"said": "repeat"},
    ):
        assert confirmation_in(Letter("confirm", node, value), [call]) == {}


def test_a_word_on_any_other_call_is_refused() -> None:
    till = left(2)
    (call,) = till.open()
    word = Confirmation("done", "seen in the books")
    for other in ("a[0]", "a", "nowhere", "a[1]@another", ""):
        with pytest.raises(InputError, match="needs a confirmation") as refused:
            till.resume(confirmed={other: word})
        assert refused.value.hint == "a confirmation is waited for at a[1]"
    assert till.resume(confirmed={call.where: word}).outputs == {"a": ["paid 1", word.value]}
