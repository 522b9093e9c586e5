"""What holds for an approved call: its answer in later attempts, and the arguments it got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import AgentError, BuildError, ModelUnavailable
from weft.events import NodeLogged
from weft.testing import FakeModel, MemoryJournal, Reply, ScriptedAgent, call_tool

MADE: list[tuple[str, int]] = []
ASKED: list[weft.PendingQuestion] = []
DOWN = [Reply(error=ModelUnavailable("down"))] * 4
"""As many failures as end an attempt of the agent."""


@pytest.fixture(autouse=True)
def _nothing_happened() -> None:
    MADE.clear()
    ASKED.clear()


@weft.tool(approve=True, effect="once")
def pay(to: str, amount: int) -> str:
    """Pay."""
    MADE.append((to, amount))
    return f"paid {amount} to {to}"


@weft.tool(approve=True)
def nudge(to: str, amount: int) -> str:
    """Remind somebody; may act twice."""
    MADE.append((to, amount))
    return "reminded"


def request(tool: str = "pay", amount: int = 5) -> Reply:
    call = weft.ToolCall("c", tool, json.dumps({"to": "bob", "amount": amount}))
    return Reply(tool_calls=[call])


def retried(model: FakeModel, tool: weft.Tool[..., Any] = pay) -> weft.Flow:
    """An agent with `tool`, whose node is tried three times."""
    flow = weft.Flow("refund", models={"m": model})
    retry = {"attempts": 3, "delay": 0}
    flow.output(
        a=flow.model("m", "refund", tools=[tool], agent="parallel-react", retry=retry, name="a")
    )
    return flow


def answering(*answers: Any) -> Any:
    """Answers in order; a question beyond them stays open."""
    left = list(answers)

    def answer(question: weft.PendingQuestion) -> Any:
        ASKED.append(question)
        return left.pop(0) if left else None

    return answer


def read(model: FakeModel) -> list[str]:
    """The results of calls in the model's last request."""
    return [each.content for each in model.requests[-1].messages if each.role == "tool"]


CHANGED = {"approve": True, "arguments": {"to": "eve", "amount": 3}}
NO = {"approve": False, "reason": "already paid?"}


@pytest.mark.parametrize(("answer", "made"), [(True, ("bob", 5)), (CHANGED, ("eve", 3))])
def test_a_retried_agent_gets_the_result_of_its_paid_call_without_a_question(
    answer: Any, made: tuple[str, int]
) -> None:
    model = FakeModel([request(), *DOWN, request(), "done"])
    result = retried(model).run_sync(answer=answering(answer, NO), journal=MemoryJournal())
    assert (result.status, result.outputs) == ("succeeded", {"a": "done"})
    assert (MADE, len(ASKED)) == ([made], 1)
    assert read(model)[0].startswith(f"paid {made[1]} to {made[0]}")


def test_the_answer_holds_without_a_record_and_a_no_holds_too() -> None:
    model = FakeModel([request(), *DOWN, request(), "done"])
    assert retried(model).run_sync(answer=answering(True), durability="none").ok
    assert (MADE, len(ASKED)) == ([("bob", 5)], 1)
    model = FakeModel([request(), *DOWN, request(), "done"])
    assert retried(model).run_sync(answer=answering(NO, True)).ok
    assert (MADE, len(ASKED)) == ([("bob", 5)], 2)  # one for each run
    assert "already paid?" in read(model)[0]


def test_another_call_of_a_retried_agent_is_another_question() -> None:
    model = FakeModel([request(), *DOWN, request(amount=6), "done"])
    retried(model).run_sync(answer=answering(True, NO), journal=MemoryJournal())
    assert [question.arguments["amount"] for question in ASKED] == [5, 6]
    assert MADE == [("bob", 5)]


def test_a_call_that_may_act_twice_is_asked_about_in_each_attempt() -> None:
    model = FakeModel([request("nudge"), *DOWN, request("nudge"), "done"])
    retried(model, nudge).run_sync(answer=answering(True, NO), journal=MemoryJournal())
    assert (len(ASKED), MADE) == (2, [("bob", 5)])


def test_a_workflow_that_is_retried_around_a_paid_call_does_not_ask_again() -> None:
    model = FakeModel([*DOWN[:1], "done"])
    inner = weft.Flow("inner", models={"m": model})
    paid = inner.tool(pay, to="bob", amount=5)
    inner.output(said=inner.model("m", f"thank for {paid}", retry=1))
    flow = weft.Flow("outer")
    flow.output(
        said=flow.workflow(inner, retry={"attempts": 2, "delay": 0}, retry_on=["JoinUnsatisfied"])[
            "said"
        ]
    )
    assert flow.run_sync(answer=answering(True), journal=MemoryJournal()).ok
    assert (MADE, len(ASKED)) == ([("bob", 5)], 1)


def test_an_attempt_in_another_process_keeps_the_answer() -> None:
    journal = MemoryJournal()
    both = [*request().tool_calls, *request(amount=6).tool_calls]
    first = FakeModel([request(), *DOWN, Reply(tool_calls=both)])
    asking = retried(first).run_sync(answer=answering(True), journal=journal)
    assert (asking.status, len(asking.questions), MADE) == ("asking", 1, [("bob", 5)])

    async def main() -> weft.FlowResult:
        answers = {asking.questions[0].node: NO}
        flow = retried(FakeModel(["done"]))
        return await flow.resume(asking.run, answers=answers, journal=journal).wait()

    result = asyncio.run(main())
    assert (result.outputs, MADE, len(ASKED)) == ({"a": "done"}, [("bob", 5)], 2)


BANK = """
import weft
@weft.tool(approve=True, effect="once")
def pay(to: str, amount: int) -> str:
    'Pay.'
    raise AssertionError("nothing is called in a replay")
"""
REFUND = """
name: refund
tools: {pay: {use: "./bank.py:pay", effect: once, approve: true}}
models: {m: {use: openai, model: m, base_url: "http://127.0.0.1:9/v1"}}
nodes:
  a:
    model: m
    prompt: refund
    tools: [pay]
    agent: {loop: parallel-react}
    retry: {attempts: 3, delay: 0s}
outputs: {a: "{{ a }}"}
"""


def test_a_run_of_an_older_weft_that_asked_twice_replays_as_it_was(
    weft_replay: Any, tmp_path: Path
) -> None:
    (tmp_path / "bank.py").write_text(BANK)
    (tmp_path / "refund.yaml").write_text(REFUND)
    replay = weft_replay("history/asked_twice.cassette", tmp_path / "refund.yaml")
    assert replay.result["a"] == "nothing was paid"  # yes, then no: what was read is read again


CALL = '{"name": "pay", "arguments": {"to": "bob", "amount": 500}}'
ANSWER = '{"next": {"answer": "done"}}'
MODELS: dict[str, Sequence[str]] = {
    "react": (f'{{"next": {{"call": {CALL}}}}}', ANSWER),
    "divide": (f'{{"next": {{"calls": [{CALL}]}}}}', ANSWER),
    "compiler": (
        '1. pay(to="bob", amount=500)\n2. join($1)\n',
        '{"next": {"replan": "pay once more"}}',
        '2. pay(to="bob", amount=500)\n3. join($2)\n',
        ANSWER,
    ),
}


def asked(agent: str) -> tuple[weft.Answer, FakeModel, list[Any]]:
    """An agent that requests 500 to bob, of which a person makes 3 to eve."""
    model: FakeModel = (
        FakeModel(list(MODELS[agent]))
        if agent in MODELS
        else ScriptedAgent([call_tool("pay", to="bob", amount=500), "done"])
    )
    events: list[Any] = []
    settings = weft.AskSettings(
        durability="none", answer=answering(CHANGED), listeners=[events.append]
    )
    return (
        weft.ask_sync("pay bob", tools=[pay], model=model, agent=agent, settings=settings),
        model,
        events,
    )


@pytest.mark.parametrize("agent", [*MODELS, "parallel-react"])
def test_model_caller_and_listener_see_the_call_that_a_person_made_of_it(agent: str) -> None:
    answer, model, events = asked(agent)
    assert (answer.value, MADE) == ("done", [("eve", 3)])
    for call in answer.calls:
        assert call.arguments == {"to": "eve", "amount": 3}
        assert call.requested == {"to": "bob", "amount": 500}
    last = "\n".join(message.content for message in model.requests[-1].messages)
    assert 'pay(to="eve", amount=3)' in last
    assert "a person changed this call before it was made" in last.lower()
    lines = [event.text for event in events if isinstance(event, NodeLogged)]
    assert "a person changed the call: pay(to='eve', amount=3)" in lines


def test_a_history_of_tool_messages_has_the_call_that_was_made() -> None:
    _, model, _ = asked("parallel-react")
    (call,) = next(each.tool_calls for each in model.requests[-1].messages if each.tool_calls)
    assert json.loads(call.arguments) == {"to": "eve", "amount": 3}


def test_the_next_plan_knows_what_was_made_of_the_last_one() -> None:
    answer, model, _ = asked("compiler")
    assert [call.outcome.via for call in answer.calls] == ["", "cache"]
    assert 'changed the call to pay(to="eve", amount=3)' in model.requests[2].messages[-1].content


def test_a_call_that_nobody_changed_is_as_requested() -> None:
    settings = weft.AskSettings(durability="none", answer=lambda _: True)
    model = ScriptedAgent([call_tool("pay", to="bob", amount=5), "done"])
    answer = weft.ask_sync(
        "pay", tools=[pay], model=model, agent="parallel-react", settings=settings
    )
    assert [call.requested for call in answer.calls] == [None]
    assert read(model) == ["paid 5 to bob"]


@weft.tool(effect="once", approve=False)
def wire(amount: int) -> str:
    """Pay, and lose the connection."""
    MADE.append(("wire", amount))
    raise OSError("the line is dead")


def wired(model: FakeModel, journal: MemoryJournal, **given: Any) -> weft.Answer:
    settings = weft.AskSettings(journal=journal, **given)
    return weft.ask_sync(
        "wire 5", tools=[wire], model=model, agent="parallel-react", settings=settings
    )


def test_a_program_says_what_became_of_a_call_whose_end_is_unknown() -> None:
    journal, node = MemoryJournal(), "answer/calls1/s1"
    with pytest.raises(AgentError) as unknown:
        wired(ScriptedAgent([call_tool("wire", amount=5)]), journal, run="w")
    assert f'confirmed={{"{node}": weft.Confirmation("done", RESULT)}}' in str(unknown.value)
    with pytest.raises(AgentError, match="nobody knows"):
        wired(FakeModel(["never"]), journal, resume="w")
    assert len(MADE) == 1
    again = {node: weft.Confirmation("repeat")}
    with pytest.raises(AgentError, match="nobody knows"):  # it is made again, and lost again
        wired(FakeModel(["never"]), journal, resume="w", confirmed=again)
    assert len(MADE) == 2
    model, done = FakeModel(["done"]), {node: weft.Confirmation("done", "wired")}
    assert wired(model, journal, resume="w", confirmed=done).value == "done"
    assert (read(model), len(MADE)) == (["wired"], 2)


def test_what_is_confirmed_belongs_to_a_run() -> None:
    with pytest.raises(BuildError, match="calls of a run"):
        weft.AskSettings(confirmed={"answer/calls1/s1": weft.Confirmation("repeat")})
