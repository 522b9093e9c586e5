"""Approval of tool calls, through public names: in nodes, agents, batches and alternatives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import BuildError, InputError
from weft.testing import FakeModel, MemoryJournal, Reply

MADE: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    MADE.clear()


@weft.tool(approve=True)
async def transfer(to: str, amount: int) -> str:
    """Move money."""
    MADE.append((to, amount))
    return f"sent {amount} to {to}"


@weft.tool(approve=lambda call: call["amount"] > 10)
def pay(to: str, amount: int) -> str:
    """Pay from a thread; small amounts need nobody."""
    MADE.append((to, amount))
    return f"paid {amount} to {to}"


@weft.tool(effect="once")
async def order(to: str, amount: int) -> str:
    """Order something; must not be repeated."""
    MADE.append((to, amount))
    return "ordered"


def one(tool: weft.Tool[..., Any], amount: int = 50, **options: Any) -> weft.Flow:
    flow = weft.Flow("pay")
    flow.output(r=flow.tool(tool, to="bob", amount=amount, name="call", **options))
    return flow


def resumed(flow: weft.Flow, run: str, journal: MemoryJournal, **given: Any) -> weft.FlowResult:
    async def main() -> weft.FlowResult:
        return await flow.resume(run, journal=journal, **given).wait()

    return asyncio.run(main())


def test_the_run_pauses_with_the_arguments_and_goes_on_with_a_yes() -> None:
    journal, flow = MemoryJournal(), one(transfer)
    asking = flow.run_sync(journal=journal)
    (question,) = asking.questions
    assert (asking.status, MADE) == ("asking", [])
    assert (question.tool, question.arguments) == ("transfer", {"to": "bob", "amount": 50})
    assert question.is_approval
    assert resumed(flow, asking.run, journal).status == "asking"  # and it pauses again
    done = resumed(flow, asking.run, journal, answers={question.node: True})
    assert (done.status, done["r"], MADE) == ("succeeded", "sent 50 to bob", [("bob", 50)])


def test_a_no_fails_the_call_with_its_reason() -> None:
    result = one(transfer).run_sync(answers={"call": {"approve": False, "reason": "too much"}})
    assert result.status == "failed"
    assert "a person did not approve transfer: too much" in result.reasons[0]
    assert MADE == []


def test_a_yes_may_change_the_arguments_which_are_checked() -> None:
    changed = {"approve": True, "arguments": {"to": "ann", "amount": 7}}
    assert one(transfer).run_sync(answers={"call": changed})["r"] == "sent 7 to ann"
    wrong = {"approve": True, "arguments": {"to": "ann", "amount": "much"}}
    with pytest.raises(InputError, match="does not fit"):
        one(transfer).run_sync(answers={"call": wrong})
    assert MADE == [("ann", 7)]


def test_a_rule_decides_by_the_arguments() -> None:
    assert one(pay, 5).run_sync()["r"] == "paid 5 to bob"
    assert one(pay, 50).run_sync().status == "asking"


def test_a_rule_that_cannot_decide_leaves_it_to_the_person() -> None:
    @weft.tool(approve=lambda call: call["missing"] > 1)
    async def odd(to: str, amount: int) -> str:
        MADE.append((to, amount))
        return to

    assert one(odd).run_sync().status == "asking"
    with pytest.raises(BuildError, match="approve is str"):
        weft.tool(approve="yes")(unused)  # type: ignore[call-overload]


def unused() -> None:
    """Become no tool."""


def test_a_node_has_its_own_rule() -> None:
    assert one(order).run_sync().ok  # the author wrote the call
    assert one(order, approve=True).run_sync().status == "asking"
    assert one(transfer, approve=False).run_sync().ok
    flow = weft.Flow("pay")
    amount = flow.input("amount", int)
    flow.output(r=flow.tool(order, to="bob", amount=amount, approve="{{ amount > 10 }}"))
    assert flow.run_sync(amount=5).ok
    assert flow.run_sync(amount=50).status == "asking"


def test_a_file_declares_rules(tmp_path: Path) -> None:
    (tmp_path / "bank.py").write_text(
        "import weft\n@weft.tool\nasync def send(to: str, amount: int) -> str:\n"
        "    return f'{amount} to {to}'\n"
    )
    text = """
name: pay
inputs: {amount: integer}
tools: {send: {use: "./bank.py:send", approve: "{{ amount > 10 }}"}}
nodes: {s: {tool: send, with: {to: bob, amount: "{{ amount }}"}}}
outputs: {r: "{{ s }}"}
"""
    flow = weft.loads(text, str(tmp_path / "flow.yaml"))
    assert flow.run_sync(amount=5)["r"] == "5 to bob"
    asking = flow.run_sync(amount=50)
    assert asking.status == "asking"
    assert f"`weft resume {asking.run}`" in asking.reasons[-1]


PLANS: dict[str, tuple[str, str]] = {
    "compiler": (
        '1. NAME(to="bob", amount=50)\n2. join($1)\n',
        '{"thought": "", "decision": "finish", "answer": "done"}',
    ),
    "react": (
        '{"next": {"call": {"name": "NAME", "arguments": {"to": "bob", "amount": 50}}}}',
        '{"next": {"answer": "done"}}',
    ),
}


def asked(agent: str, tool: weft.Tool[..., Any], **given: Any) -> weft.Answer:
    first, last = PLANS[agent]
    script = [first.replace("NAME", tool.spec.name), last]
    options = weft.AgentOptions(approve=given.pop("approve", None))
    return weft.ask_sync(
        "pay bob",
        tools=[tool],
        model=FakeModel([Reply(text) for text in script]),
        agent=agent,
        options=options,
        settings=weft.AskSettings(durability="none", **given),
    )


@pytest.mark.parametrize("agent", PLANS)
def test_calls_of_agents_wait_for_a_person(agent: str) -> None:
    for tool in (transfer, order):  # declared, and by default for what must not be repeated
        answer = asked(agent, tool)
        assert (answer.status, answer.value, MADE) == ("asking", None, [])
        assert [question.tool for question in answer.questions] == [tool.spec.name]
    assert asked(agent, order, answer=lambda _: True).value == "done"
    assert asked(agent, order, approve=False).value == "done"
    assert MADE == [("bob", 50)] * 2
    assert asked(agent, transfer, approve=False).status == "asking"  # the tool's own word counts


def test_an_agent_sees_the_reason_of_a_no() -> None:
    requests: list[str] = []

    def script(request: Any) -> Reply:
        requests.append(request.messages[-1].content)
        return Reply(PLANS["react"][len(requests) > 1].replace("NAME", "transfer"))

    no = {"approve": False, "reason": "over the limit"}
    weft.ask_sync(
        "pay bob",
        tools=[transfer],
        model=FakeModel(script),
        agent="react",
        settings=weft.AskSettings(durability="none", answer=lambda _: no),
    )
    assert "over the limit" in requests[1]
    assert MADE == []


def test_batches_ask_for_each_call() -> None:
    @weft.tool(
        approve=True, batch=lambda all_: [MADE.append(("x", c["n"])) or c["n"] for c in all_]
    )
    async def send(n: int) -> int:
        raise AssertionError("the batch form is used")

    flow = weft.Flow("many")
    flow.output(r=flow.map([1, 2, 3], lambda n: flow.tool(send, n=n), on_failure="skip"))
    asked_for: list[Any] = []

    def answer(question: weft.PendingQuestion) -> bool:
        asked_for.append(question.arguments["n"])
        return question.arguments["n"] != 2

    flow.run_sync(answer=answer)
    assert sorted(asked_for) == [1, 2, 3]
    assert sorted(MADE) == [("x", 1), ("x", 3)]


def test_a_no_is_not_answered_by_an_alternative() -> None:
    result = one(transfer, alternatives=[order]).run_sync(answer=lambda _: False)
    assert (result.status, MADE) == ("failed", [])


def test_the_timeout_of_a_node_does_not_run_while_a_person_thinks() -> None:
    from weft.testing import FakeClock

    clock = FakeClock()

    async def late(_: weft.PendingQuestion) -> bool:
        await clock.sleep(60)
        return True

    async def main() -> weft.FlowResult:
        return await one(transfer, timeout="5s").run(clock=clock, answer=late)

    assert clock.run(main())["r"] == "sent 50 to bob"


def test_a_yes_is_recorded_before_the_call() -> None:
    seen: list[Sequence[Any]] = []
    journal = MemoryJournal()

    @weft.tool(approve=True)
    async def look(to: str, amount: int) -> str:
        run = journal.runs()[0].run
        seen.append([type(r.record).__name__ for r in journal.records(run)])
        return to

    for durability in ("sync", "async", "exit"):
        one(look).run_sync(journal=journal, durability=durability, answer=lambda _: True)
        assert "HumanAnswered" in seen[-1]
