"""Rounds of parallel calls on scripted models."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.agents.loops.scripted_agent import call, cost, says, talk
from weft.core.ports import Capabilities
from weft.core.values import ToolSpec
from weft.testing import FakeTools, Reply

BOTH = says(calls=cost("tea", "coffee"))
CHEAPER = says(answer="tea")


def test_the_calls_of_a_round_run_in_parallel_and_are_told_in_their_order() -> None:
    running = most = 0

    async def price(item: str) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(2.0 if item == "tea" else 1.0)
        running -= 1
        return len(item)

    talked = talk("divide", [BOTH, CHEAPER], FakeTools(price=price))
    assert most == 2
    assert talked.result.wall_s == 2.0
    assert talked.heard == [
        "Question: which is cheaper?",
        'Results of the calls:\n1. price(item="tea") -> 3\n2. price(item="coffee") -> 6',
    ]
    answer = talked.answer
    assert (answer.value, answer.rounds, len(answer.calls)) == ("tea", 1, 2)
    talked.assert_stable_prefix()


def test_calls_are_numbered_through_all_rounds() -> None:
    talked = talk("divide", [BOTH, says(calls=cost("milk")), CHEAPER])
    assert [o.number for o in talked.answer.calls] == [1, 2, 3]
    assert talked.heard[2] == 'Results of the calls:\n3. price(item="milk") -> 1'
    assert [n for n in talked.nodes if "/s" in n] == [
        "divide/calls1/s1",
        "divide/calls1/s2",
        "divide/calls2/s3",
    ]


def test_one_that_raises_spoils_nothing() -> None:
    talked = talk("divide", [says(calls=cost("tea", "gold", "coffee")), CHEAPER])
    assert [o.outcome.status for o in talked.answer.calls] == ["succeeded", "failed", "succeeded"]
    assert '2. price(item="gold") -> failed: ToolRaised: price raised' in talked.heard[1]
    assert talked.result.status == "succeeded"


def test_when_the_rounds_are_used_up_it_has_to_answer() -> None:
    talked = talk("divide", [BOTH, BOTH, BOTH, CHEAPER], rounds=2)
    assert talked.heard[2].endswith("No call is left. Answer now with what you know.")
    assert "no call can be made any more" in talked.heard[3]
    assert talked.answer.rounds == 2


def test_calls_above_the_limit_are_left_out_and_told() -> None:
    tools = FakeTools(price=lambda item: 1)
    talked = talk(
        "divide",
        [says(calls=cost(*map(str, range(1_000)))), CHEAPER],
        tools,
        calls=64,
        max_tokens=9_999,
    )
    assert len(tools.calls) == len(talked.answer.calls) == 64
    assert "936 more calls were left out: that is more than may be made." in talked.heard[1]
    assert "No call is left" in talked.heard[1]


def test_the_limit_counts_the_calls_of_all_rounds() -> None:
    talked = talk("divide", [BOTH, says(calls=cost("milk", "tea")), CHEAPER], calls=3)
    assert [o.number for o in talked.answer.calls] == [1, 2, 3]
    assert "One more call was left out" in talked.heard[2]


def test_a_thousand_calls_at_once() -> None:
    async def price(item: str) -> str:
        await asyncio.sleep(1.0 + int(item) % 7)
        return "x" * 1_000

    script = [says(calls=cost(*map(str, range(1_000)))), CHEAPER]
    talked = talk("divide", script, FakeTools(price=price), calls=2_000, max_tokens=9_999)
    assert talked.result.wall_s == 7.0
    assert [int(o.arguments["item"]) for o in talked.answer.calls] == list(range(1_000))
    assert len(talked.heard[1]) < 60_000
    assert "earlier results are left out: they are too long" in talked.heard[1]


def test_results_share_the_room() -> None:
    offered = Capabilities(structured_output=True, max_context_tokens=2_000)
    talked = talk(
        "divide",
        [says(calls=cost("a", "b", "c", "d")), CHEAPER],
        FakeTools(price=lambda item: item * 10_000),
        offered=offered,
        max_tokens=100,
    )
    lines = talked.heard[1].splitlines()[1:]
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert 400 < len(lines[0]) < 1_500


@pytest.mark.parametrize("delays", [(1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 3.0, 1.0)])
def test_who_is_first_changes_nothing_that_is_said(delays: tuple[float, ...]) -> None:
    waits = dict(zip(("tea", "coffee", "milk"), delays, strict=True))

    async def price(item: str) -> str:
        await asyncio.sleep(waits[item])
        return item

    script = [says(calls=cost("tea", "coffee", "milk")), CHEAPER]
    assert talk("divide", script, FakeTools(price=price)).heard[1] == (
        'Results of the calls:\n1. price(item="tea") -> "tea"\n'
        '2. price(item="coffee") -> "coffee"\n3. price(item="milk") -> "milk"'
    )


def test_an_equal_call_is_not_made_again_and_the_model_is_told() -> None:
    tools = FakeTools(roll=lambda: 4)
    twice = says(calls=[call("roll"), call("roll")])
    talked = talk("divide", [twice, twice, twice, CHEAPER], tools)
    assert len(tools.calls) == 1
    assert "1. roll() -> 4\n2. roll() -> failed: ToolArgumentError: This call" in talked.heard[1]
    assert "its result is number 1" in talked.heard[1]
    # Two rounds that bring nothing new are enough.
    assert "No call is left" not in talked.heard[2]
    assert "No call is left" in talked.heard[3]


def test_an_equal_call_of_a_tool_without_a_new_effect_has_the_result_there_is() -> None:
    class Idempotent(FakeTools):
        def specs(self) -> tuple[ToolSpec, ...]:
            return tuple(replace(spec, effect="idempotent") for spec in super().specs())

    tools = Idempotent(price=lambda item: 3)
    twice = says(calls=cost("tea", "tea"))
    talked = talk("divide", [twice, CHEAPER], tools)
    assert len(tools.calls) == 1
    assert [(one.number, one.outcome.value, one.outcome.via) for one in talked.answer.calls] == [
        (1, 3, ""),
        (2, 3, "cache"),
    ]


def test_text_of_the_model_streams_in_its_own_node() -> None:
    script = [Reply(BOTH, per_token_s=0.1), Reply(CHEAPER, per_token_s=0.1)]
    talked = talk("divide", script)
    streamed: dict[str, str] = {}
    for event in talked.events:
        if type(event).__name__ == "NodeStreamed":
            piece: Any = event
            streamed[piece.node] = streamed.get(piece.node, "") + piece.text
    assert streamed == {"divide/turn1": BOTH, "divide/turn2": CHEAPER}
