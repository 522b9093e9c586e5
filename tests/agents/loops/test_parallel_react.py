"""Native tool calls on scripted models: the messages that go back, and what is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.agents.loops.scripted_agent import roles, talk
from weft.core.ports import Capabilities
from weft.core.values import Message, ToolCall
from weft.testing import FakeTools, Reply


def asks(*items: str, text: str = "", start: int = 1) -> Reply:
    calls = (
        ToolCall(f"c{n}", "price", json.dumps({"item": item}))
        for n, item in enumerate(items, start)
    )
    return Reply(text, tuple(calls))


def test_calls_go_out_together_and_come_back_as_tool_messages() -> None:
    async def price(item: str) -> Any:
        await asyncio.sleep(2.0 if item == "tea" else 1.0)
        return {"cents": len(item)} if item == "tea" else item

    talked = talk("parallel-react", [asks("tea", "coffee", text="Both."), "tea"],
                  FakeTools(price=price))  # fmt: skip
    assert talked.result.wall_s == 2.0
    assert talked.answer.value == "tea"
    assert talked.requests[1].messages[2:] == (
        Message(
            "assistant",
            "Both.",
            (
                ToolCall("c1", "price", '{"item": "tea"}'),
                ToolCall("c2", "price", '{"item": "coffee"}'),
            ),
        ),
        Message("tool", '{"cents": 3}', tool_call_id="c1"),
        Message("tool", "coffee", tool_call_id="c2"),
    )
    assert [request.tool_choice for request in talked.requests] == ["auto", "auto"]
    talked.assert_stable_prefix()


def test_a_call_that_fails_is_told_and_no_end() -> None:
    talked = talk("parallel-react", [asks("gold", "tea"), "tea"])
    assert talked.requests[1].messages[3].content == (
        "failed: ToolRaised: price raised KeyError: 'gold'"
    )
    assert [o.outcome.ok for o in talked.answer.calls] == [False, True]
    assert talked.result.status == "succeeded"


@pytest.mark.parametrize("arguments", ['{"item": ', "[1]", "tea", "\x00"])
def test_arguments_that_are_no_object_are_told_and_not_sent_again(arguments: str) -> None:
    """Servers read the arguments of earlier calls as JSON, and refuse the request otherwise."""
    talked = talk("parallel-react", [Reply("", (ToolCall("c1", "price", arguments),)), "tea"])
    asked, told = talked.requests[1].messages[2:]
    assert asked.tool_calls == (ToolCall("c1", "price", "{}"),)
    assert "failed: ToolArgumentError: what it is called with is not" in told.content


def test_no_arguments_are_an_empty_object() -> None:
    tools = FakeTools(now=lambda: "noon")
    talked = talk("parallel-react", [Reply("", (ToolCall("c1", "now", ""),)), "noon"], tools)
    assert tools.calls == [("now", {})]
    assert talked.requests[1].messages[2].tool_calls[0].arguments == "{}"


def test_ids_that_tell_nothing_apart_are_replaced() -> None:
    same = ToolCall("c1", "price", '{"item": "tea"}')
    none = ToolCall("", "price", '{"item": "coffee"}')
    talked = talk("parallel-react", [Reply("", (same, none, same)), Reply("", (same,)), "tea"])
    messages = talked.requests[-1].messages
    asked = [call.id for message in messages for call in message.tool_calls]
    assert asked == ["c1", "call00002", "call00003", "call00004"]
    assert [m.tool_call_id for m in messages if m.role == "tool"] == asked


def test_when_the_rounds_are_used_up_it_has_to_answer() -> None:
    talked = talk("parallel-react", [asks("tea"), asks("coffee"), asks("milk"), "tea"], rounds=2)
    assert [request.tool_choice for request in talked.requests] == ["auto", "auto", "none", "none"]
    assert "No call is left" in talked.requests[2].messages[-1].content
    assert "no call can be made any more" in talked.heard[3]
    assert len(talked.answer.calls) == 2
    talked.assert_stable_prefix()


def test_calls_above_the_limit_are_left_out_and_told() -> None:
    talked = talk("parallel-react", [asks(*map(str, range(1_000))), "tea"], calls=3)
    assert roles(talked.requests[1].messages) == "system user assistant tool tool tool"
    assert talked.requests[1].messages[-1].content == (
        "failed: ToolRaised: price raised KeyError: '2'\n\n"
        "997 more calls were left out: that is more than may be made.\n\n"
        "No call is left. Answer now with what you know."
    )


def test_a_thousand_calls_at_once_stay_in_order_and_in_bounds() -> None:
    async def price(item: str) -> str:
        await asyncio.sleep(1.0 + int(item) % 3)
        return item * 1_000

    script: list[Reply | str] = [asks(*map(str, range(1_000))), "done"]
    talked = talk("parallel-react", script, FakeTools(price=price), calls=1_000)
    told = [m.content for m in talked.requests[1].messages if m.role == "tool"]
    assert [content.startswith(str(n)) for n, content in enumerate(told)] == [True] * 1_000
    assert sum(map(len, told)) < 150_000


@pytest.mark.parametrize("empty", ["", "   "])
def test_an_empty_answer_is_told_and_then_ends_it(empty: str) -> None:
    assert talk("parallel-react", [empty, "tea"]).answer.value == "tea"
    talked = talk("parallel-react", [empty])
    assert len(talked.requests) == 3
    assert "3 times in a row; the last time: the answer is empty" in talked.reason


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    talked = talk("parallel-react", ["word " * 50], max_tokens=20)
    assert "it was cut off after 20 tokens" in talked.heard[1]
    assert "raise max_tokens" in talked.reason


COUNT = {"type": "integer", "minimum": 1}


def test_a_typed_answer_is_asked_for_with_its_schema_when_it_does_not_come_by_itself() -> None:
    talked = talk("parallel-react", [asks("tea"), "It costs 3.", "3"], schema=COUNT)
    assert talked.answer.value == 3
    assert [request.schema for request in talked.requests] == [None, None, COUNT]
    assert [request.tool_choice for request in talked.requests] == ["auto", "auto", "none"]
    assert json.dumps(COUNT) in talked.heard[2]
    assert talk("parallel-react", [asks("tea"), "3"], schema=COUNT).answer.value == 3


def test_a_model_that_cannot_be_held_to_a_schema_is_asked_in_words() -> None:
    offered = Capabilities(tools=True)
    talked = talk("parallel-react", ["three", "3"], schema=COUNT, offered=offered)
    assert talked.answer.value == 3
    assert [request.schema for request in talked.requests] == [None, None]


def test_a_model_without_tool_calls_is_refused_with_a_way_out() -> None:
    talked = talk("parallel-react", ["tea"], offered=Capabilities())
    assert "CapabilityError: fake has no tool calls of its own" in talked.reason
    assert '"react" and "divide"' in talked.reason
    assert talked.requests == []


def test_huge_results_are_shortened() -> None:
    talked = talk("parallel-react", [asks("tea"), "x"], FakeTools(price=lambda item: "y" * 10**7))
    assert len(talked.requests[1].messages[-1].content) < 5_000
    assert "of 10,000,000 characters left out" in talked.requests[1].messages[-1].content


def test_an_empty_result_is_still_a_message() -> None:
    talked = talk("parallel-react", [asks("tea"), "x"], FakeTools(price=lambda item: ""))
    assert talked.requests[1].messages[-1].content == '""'


def test_without_calls_it_answers_at_once() -> None:
    talked = talk("parallel-react", ["tea"], calls=0)
    assert talked.answer.rounds == 0
    assert talked.requests[0].tool_choice == "none"
