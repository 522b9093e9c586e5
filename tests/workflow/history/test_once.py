"""A call that must not be repeated acts at most once, by whatever way its node is tried again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import weft
from tests.agents.loops.scripted_agent import call, says
from tests.workflow.case import WHOLE, echo
from weft.core.call_context import current_key
from weft.core.errors import ModelUnavailable, NotDone, ToolRaised, ToolResultError
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.values import ToolCall, ToolSpec
from weft.durability.calls import Confirmation
from weft.engine.scheduler.effects import EffectLedger, UnsettledEffect
from weft.planner.routing import ToolHistory
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryJournal, MemoryStore, Reply
from weft.workflow import FlowResult
from weft.workflow.history.run_history import read_history
from weft.workflow.history.unsettled_calls import unsettled_calls

HEAD = """\
name: case
models:
  small: local:smollm2-135m-instruct
tools:
  visa: ./tools.py:search
  cash: ./tools.py:search
"""
JOURNALS = pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "unrecorded"])
Outcomes = Mapping[str, list[Any]]


class Bank(FakeTools):
    """Tools `visa` and `cash` that must not be called twice for one order.

    Each call is in the `ledger`, and comes to the next of the tool's outcomes: an error, seconds
    that it takes before it returns, or a function that returns.
    """

    def __init__(self, outcomes: Outcomes, clock: FakeClock) -> None:
        super().__init__(visa=self._visa, cash=self._cash)
        self.ledger: list[tuple[str, str]] = []
        self._outcomes = {name: list(each) for name, each in outcomes.items()}
        self._clock = clock

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(replace(spec, effect="once") for spec in super().specs())

    async def _visa(self, query: str) -> str:
        return await self._paid("visa", query)

    async def _cash(self, query: str) -> str:
        return await self._paid("cash", query)

    async def _paid(self, name: str, order: str) -> str:
        outcome = (self._outcomes.get(name) or [0.0]).pop(0) if self._outcomes.get(name) else 0.0
        if isinstance(outcome, NotDone):
            raise outcome
        self.ledger.append((name, order))
        if isinstance(outcome, Exception):
            raise outcome
        await self._clock.sleep(outcome)
        return f"{name} paid {order}"


class Shop:
    """Runs of a workflow over a bank, recorded or not."""

    def __init__(self, nodes: str, recorded: bool, output: str = "a", **outcomes: Any) -> None:
        self.clock = FakeClock()
        self.bank = Bank(outcomes, self.clock)
        self.journal = MemoryJournal(self.clock) if recorded else None
        text = f'{HEAD}nodes:\n{nodes}\noutputs:\n  {output}: "{{{{ {output} }}}}"\n'
        self.flow = weft.loads(text, str(WHOLE / "case.yaml"))

    def run(self, script: Callable[..., Any] = echo) -> FlowResult:
        return self.clock.run(self.flow.run(**self.settings(script)))

    def resume(
        self, script: Callable[..., Any] = echo, said: Mapping[str, Confirmation] | None = None
    ) -> FlowResult:
        async def main() -> FlowResult:
            run = self.flow.resume("last", confirmed=said, **self.settings(script))
            return await run.wait()

        return self.clock.run(main())

    def settings(self, script: Callable[..., Any]) -> dict[str, Any]:
        return {
            "models": {"small": FakeModel(script)},
            "tools": self.bank,
            "journal": self.journal,
            "clock": self.clock,
        }

    def unsettled(self) -> list[str]:
        assert self.journal is not None
        story = read_history(self.journal, self.journal.runs()[0].run)
        return [call.where for call in unsettled_calls(story.records)]


def error_of(result: FlowResult, node: str = "a") -> str:
    failure = result.outcomes[NodeId(node)].failure
    return "" if failure is None else failure.error


PAY = 'tool: visa, with: {query: "order 1"}'


@JOURNALS
@pytest.mark.parametrize("outcome", [60.0, ToolRaised("the line broke", retryable=True)])
@pytest.mark.parametrize(
    "nodes",
    [
        f"  a: {{{PAY}, timeout: 1s, retry: 3}}",
        f"  a: {{{PAY}, timeout: 1s, alternatives: [cash]}}",
        f"  a: {{{PAY}, timeout: 1s, retry: 2, alternatives: [cash]}}",
        (
            f"  a: {{{PAY}, timeout: 1s, fallback: b}}\n"
            '  b: {tool: cash, with: {query: "order 1"}}'
        ),
        (
            f"  a: {{map: [1], retry: 3, fallback: b, do: {{{PAY}, timeout: 1s}}}}\n"
            '  b: {tool: cash, with: {query: "order 1"}}'
        ),
        (
            f"  a: {{loop: {{{PAY}, timeout: 1s, default: null}}, as: it, start: null, "
            'until: "{{ it is not none }}", max: 3}'
        ),
    ],
    ids=["retry", "alternatives", "both", "fallback", "map", "loop"],
)
def test_an_unknown_end_is_a_matter_for_a_person(recorded: bool, outcome: Any, nodes: str) -> None:
    shop = Shop(nodes, recorded, visa=[outcome])
    result = shop.run()
    assert shop.bank.ledger == [("visa", "order 1")]
    assert result.status == "failed"
    assert error_of(result) == "EffectUnknown"
    assert [(each.tool, each.end) for each in result.unsettled] == [("visa", "unknown")]
    assert any("nobody knows whether visa was carried out" in each for each in result.reasons)


@JOURNALS
def test_what_stands_in_without_acting_leaves_it_visible(recorded: bool) -> None:
    for policy in ("default: unpaid", "on_failure: skip"):
        shop = Shop(f"  a: {{{PAY}, timeout: 1s, {policy}}}", recorded, visa=[60.0])
        result = shop.run()
        assert shop.bank.ledger == [("visa", "order 1")]
        assert result.status == ("succeeded" if "default" in policy else "partial")
        assert [each.node for each in result.unsettled] == ["a"]
        assert error_of(result) == "EffectUnknown"


@JOURNALS
def test_nothing_has_happened_where_the_tool_says_so(recorded: bool) -> None:
    declined = [NotDone("declined", retryable=True)]
    shop = Shop(f"  a: {{{PAY}, retry: 2, alternatives: [cash]}}", recorded, visa=declined)
    result = shop.run()
    assert result.outputs == {"a": "visa paid order 1"}
    shop = Shop(f"  a: {{{PAY}, alternatives: [cash]}}", recorded, visa=declined)
    assert shop.run().outputs == {"a": "cash paid order 1"}
    assert shop.bank.ledger == [("cash", "order 1")]


@JOURNALS
def test_what_was_carried_out_without_a_result_is_not_done_elsewhere(recorded: bool) -> None:
    lies = [ToolResultError("no receipt")]
    shop = Shop(f"  a: {{{PAY}, alternatives: [cash]}}", recorded, visa=lies)
    result = shop.run()
    assert shop.bank.ledger == [("visa", "order 1")]
    assert [(each.tool, each.end) for each in result.unsettled] == [("visa", "done")]
    assert shop.journal is None or "done:JSON" in result.reasons[0]


@JOURNALS
@pytest.mark.parametrize("mode", ["any", "first_valid"])
def test_who_is_cancelled_by_a_sibling_is_named(recorded: bool, mode: str) -> None:
    valid = ', valid: "{{ value is not none }}"' if mode == "first_valid" else ""
    do = 'do: {tool: visa, with: {query: "{{ it }}"}}'
    nodes = f"  a: {{map: [1, 2], mode: {mode}{valid}, as: it, {do}}}"
    shop = Shop(nodes, recorded, visa=[60.0, 0.0])
    result = shop.run()
    assert result.outputs == {"a": ["visa paid 2"]}
    assert [each.node for each in result.unsettled] == ["a[0]"]
    assert result.status == "succeeded"


@JOURNALS
@pytest.mark.parametrize("loop", ["parallel-react", "react", "compiler"])
def test_an_agent_is_not_asked_what_to_do_next(recorded: bool, loop: str) -> None:
    agent = f"{{loop: {loop}, approve: false}}"
    node = f"model: small, prompt: pay, tools: [visa, cash], agent: {agent}, retry: 2"
    nodes = f'  a: {{{node}, fallback: b}}\n  b: {{tool: cash, with: {{query: "order 1"}}}}'
    shop = Shop(nodes, recorded, visa=[ToolRaised("the line broke", retryable=True)])
    tools = iter(("visa", "cash", "visa"))

    def script(_: ModelRequest) -> Reply:
        tool, arguments = next(tools), {"query": "order 1"}
        if loop == "parallel-react":
            return Reply("", (ToolCall("c", tool, json.dumps(arguments)),))
        if loop == "compiler":
            return Reply(f'1. {tool}(query="order 1")\n2. join($1)\n')
        return Reply(says(call=call(tool, **arguments)))

    result = shop.run(script)
    assert shop.bank.ledger == [("visa", "order 1")]
    assert error_of(result) == "EffectUnknown"


@JOURNALS
def test_an_agent_that_is_tried_again_does_not_pay_again(recorded: bool) -> None:
    agent = "{loop: parallel-react, approve: false}"
    node = f"model: small, prompt: pay, tools: [visa, cash], agent: {agent}, retry: 3"
    shop = Shop(f"  a: {{{node}}}", recorded)
    asked = iter(["visa", None, None, None, "visa", "paid"])

    def script(_: ModelRequest) -> Reply:
        tool = next(asked)
        if tool is None:
            return Reply(error=ModelUnavailable("away"))
        if tool == "paid":
            return Reply("it is paid")
        return Reply("", (ToolCall("c", tool, '{"query": "order 1"}'),))

    assert shop.run(script).outputs == {"a": "it is paid"}
    assert shop.bank.ledger == [("visa", "order 1")]
    asked = iter(["visa", None, None, None, "cash", "paid"])
    other = Shop(f"  a: {{{node}}}", recorded)
    result = other.run(script)
    assert other.bank.ledger == [("visa", "order 1")]
    assert error_of(result) == "EffectUnknown"


def test_an_idempotent_tool_has_one_key_for_its_intent_without_a_journal() -> None:
    keys: list[str] = []

    class Keyed(FakeTools):
        def specs(self) -> tuple[ToolSpec, ...]:
            return tuple(replace(spec, effect="idempotent") for spec in super().specs())

    def visa(query: str) -> str:
        keys.append(current_key())
        if len(keys) % 2:
            raise ToolRaised("the line broke", retryable=True)
        return query

    shop = Shop(f"  a: {{{PAY}, retry: 2}}", recorded=False)
    for _ in range(2):
        clock = FakeClock()
        result = clock.run(shop.flow.run(tools=Keyed(visa=visa), clock=clock))
        assert result.outputs == {"a": "order 1"}
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert all(keys)


def test_a_budget_that_is_spent_starts_nothing_in_its_place() -> None:
    node = NodeId("agent")
    ledger = EffectLedger([node], [UnsettledEffect(NodeId("agent~2/calls1/s1"), "visa")])
    assert ledger.undecided_in(node)
    assert not ledger.undecided_in(NodeId("age"))
    assert ledger.made_earlier(NodeId("agent~3"))


def test_a_thread_that_goes_on_after_its_timeout_is_not_joined_by_another() -> None:
    ledger: list[str] = []
    gate = threading.Event()

    @weft.tool(effect="once")
    def pay(order: str) -> str:
        """Pay."""
        gate.wait(30.0)
        ledger.append(order)
        return "paid"

    flow = weft.Flow("case")
    flow.output(a=flow.tool(pay, "order 1", timeout="20ms", retry=3))
    result = flow.run_sync(durability="none")
    gate.set()
    assert result.outcomes[NodeId("pay")].attempts == 1
    assert [each.tool for each in result.unsettled] == ["pay"]


FALLBACK = (
    f'  a: {{{PAY}, fallback: b}}\n  b: {{tool: cash, with: {{query: "order 1"}}, timeout: 1s}}'
)
AGENT = "  a: {model: small, prompt: pay, tools: [visa, cash], "
AGENT += "agent: {loop: parallel-react, approve: false}, "


def by_turns(request: ModelRequest) -> Reply:
    """Calls `visa`, then `cash`, and answers once something was paid."""
    told = [message.content for message in request.messages if message.role == "tool"]
    if any(" paid " in content for content in told):
        return Reply("it is paid")
    return Reply("", (ToolCall("c", ("visa", "cash")[len(told) % 2], '{"query": "order 1"}'),))


@pytest.mark.parametrize(
    "nodes",
    [FALLBACK, f"  a: {{{PAY}, timeout: 1s, alternatives: [cash]}}", AGENT + "timeout: 9s}"],
    ids=["fallback", "alternatives", "agent"],
)
@pytest.mark.parametrize("outcome", [60.0, ToolRaised("the line broke")])
def test_what_was_declined_is_not_tried_again_after_another_may_have_acted(
    nodes: str, outcome: Any
) -> None:
    shop = Shop(nodes, True, visa=[NotDone("declined")], cash=[outcome])
    assert error_of(shop.run(by_turns)) == "EffectUnknown"
    assert shop.bank.ledger == [("cash", "order 1")]
    [where] = shop.unsettled()
    assert shop.resume(by_turns).status == "failed"
    assert shop.bank.ledger == [("cash", "order 1")]
    word = Confirmation("done", "cash paid order 1")
    assert shop.resume(by_turns, {where: word}).status == "succeeded"
    assert shop.bank.ledger == [("cash", "order 1")]


@JOURNALS
def test_nor_by_an_agent_that_is_tried_again(recorded: bool) -> None:
    shop = Shop(AGENT + "retry: 2}", recorded, visa=[NotDone("declined")])
    away = iter([False, False, True, True, True])

    def script(request: ModelRequest) -> Reply:
        if next(away, False):
            return Reply(error=ModelUnavailable("away"))
        return by_turns(request)

    assert shop.run(script).outputs == {"a": "it is paid"}
    assert shop.bank.ledger == [("cash", "order 1")]


def test_an_item_that_was_declined_is_tried_again_whatever_the_others_did() -> None:
    do = 'do: {tool: visa, with: {query: "no {{ it }}"}}'
    shop = Shop(f"  a: {{map: [1, 2], as: it, {do}}}", True, visa=[NotDone("declined"), 0.5])
    assert shop.run().status == "failed"
    shop.resume()
    assert ("visa", "no 1") in shop.bank.ledger


def test_a_resumed_route_begins_with_the_call_that_was_under_way() -> None:
    shop = Shop(f"  a: {{{PAY}, alternatives: [cash]}}", True, visa=[60.0])
    store = MemoryStore(shop.clock)
    history = ToolHistory(store, scope="case", clock=shop.clock)

    async def left() -> None:
        run = shop.flow.start({}, **shop.settings(echo), store=store)
        waiting = asyncio.ensure_future(run.wait())
        await asyncio.sleep(0.5)
        run.pause("left")
        await waiting
        for _ in range(20):  # what other runs saw since
            await history.note("visa", False, 1.0)

    async def resumed() -> FlowResult:
        return await shop.flow.resume("last", **shop.settings(echo), store=store).wait()

    shop.clock.run(left())
    result = shop.clock.run(resumed())
    assert shop.bank.ledger == [("visa", "order 1")]
    assert error_of(result) == "EffectUnknown"
