"""Calls that must not be repeated, in a workflow that has changed since they were made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

import weft
from tests.workflow.case import HEAD, loads
from tests.workflow.history.recorded_runs import House
from weft.core.errors import InputError, NotDone
from weft.core.ids import NodeId
from weft.durability.calls import Confirmation
from weft.workflow import FlowResult
from weft.workflow.history.replay import replay
from weft.workflow.history.resume import WorkflowChanged

END = "  end: {tool: fail, with: {query: 'end {{ %s }}'}}"
TOOLS = "  pay: ./tools.py:search\n  fail: ./tools.py:search\n"


def flow_of(nodes: str) -> weft.Flow:
    return loads(nodes, 'a: "{{ end }}"', HEAD + TOOLS)


class Till:
    """A house whose tool `pay` must not be called twice; `fail` fails the first time."""

    def __init__(self, nodes: str) -> None:
        self.ledger: list[str] = []
        self.broken = True
        self.house = House(pay=self.pay, fail=self.fail)
        self.house.effect = "once"
        result = self.house.run(flow_of(nodes))
        assert result.status == "failed"

    async def pay(self, query: str) -> str:
        self.ledger.append(query)
        return f"paid {query}"

    async def fail(self, query: str) -> str:
        if self.broken:
            self.broken = False
            raise NotDone("no end yet")
        return query

    def resume(
        self, nodes: str, words: Mapping[str, Literal["done", "repeat"]] | None = None
    ) -> FlowResult:
        said = {place: Confirmation(word) for place, word in (words or {}).items()}
        return self.house.resume(flow_of(nodes), accept_changes=True, confirmed=said)


def one(amount: str, name: str = "pay") -> str:
    return f"  {name}: {{tool: pay, with: {{query: '{amount}'}}}}\n" + END % name


def many(amounts: str) -> str:
    pay = "{nodes: {charge: {tool: pay, with: {query: 'no {{ it }}'}}}, result: '{{ charge }}'}"
    return f"  first: {{map: {amounts}, as: it, do: {pay}}}\n" + END % "first"


def failure(result: FlowResult, node: str) -> str:
    found = result.outcomes[NodeId(node)].failure
    return "" if found is None else found.error


def test_other_arguments_need_a_word() -> None:
    till = Till(one("12"))
    result = till.resume(one("14"))
    assert till.ledger == ["12"]
    assert failure(result, "pay") == "EffectUnknown"
    assert "with other arguments" in result.reasons[0]
    result = till.resume(one("14"), words={"pay": "repeat"})
    assert till.ledger == ["12", "14"]
    assert result.outputs == {"a": "end paid 14"}
    assert replay(till.house.story(), flow_of(one("14")).unit).ok


def test_a_word_may_keep_what_was_done() -> None:
    till = Till(one("12"))
    result = till.resume(one("14"), words={"pay": "done"})
    assert till.ledger == ["12"]
    assert result.outputs == {"a": "end paid 12"}
    assert replay(till.house.story(), flow_of(one("14")).unit).ok


def test_a_node_before_it_was_added() -> None:
    added = "  more: {value: 2}\n" + one("{{ 12 + more }}")
    till = Till(one("12"))
    with pytest.raises(WorkflowChanged) as changed:
        till.house.resume(flow_of(added))
    [node] = [node for node in changed.value.changes.nodes if node.may_act_twice]
    assert (node.node, node.acted) == ("pay", 1)
    till.resume(added)
    assert till.ledger == ["12"]


def test_what_is_the_same_needs_none() -> None:
    till = Till(one("12"))
    result = till.resume("  more: {value: 2}\n" + one("12"))
    assert till.ledger == ["12"]
    assert result.outputs == {"a": "end paid 12"}


def test_a_word_for_all_items() -> None:
    till = Till(many("[1, 2, 3]"))
    assert till.ledger == ["no 1", "no 2", "no 3"]
    refused = till.resume(many("[1, 5, 6]"))
    assert till.ledger == ["no 1", "no 2", "no 3"]
    assert [failure(refused, f"first[{n}]/charge") for n in (1, 2)] == ["EffectUnknown"] * 2
    with pytest.raises(InputError, match=r"first\[\*\]/charge"):
        till.resume(many("[1, 5, 6]"), words={"second[*]/charge": "repeat"})
    result = till.resume(many("[1, 5, 6]"), words={"first[*]/charge": "repeat"})
    assert till.ledger == ["no 1", "no 2", "no 3", "no 5", "no 6"]
    assert result.outputs == {"a": 'end ["paid no 1", "paid no 5", "paid no 6"]'}


def test_a_call_that_was_moved_to_another_node_needs_a_word() -> None:
    till = Till(one("12"))
    result = till.resume(one("12", name="charge"))
    assert till.ledger == ["12"]
    assert failure(result, "charge") == "EffectUnknown"
    result = till.resume(one("12", name="charge"), words={"charge": "done"})
    assert till.ledger == ["12"]
    assert result.outputs == {"a": "end paid 12"}


def test_a_word_that_nobody_waits_for_is_refused() -> None:
    till = Till(one("12"))
    with pytest.raises(InputError, match="needs a confirmation"):
        till.house.resume(flow_of(one("12")), confirmed={"pay": Confirmation("repeat")})
    with pytest.raises(InputError, match="needs a confirmation"):
        till.house.resume(flow_of(one("12")), confirmed={"p*": Confirmation("repeat")})
