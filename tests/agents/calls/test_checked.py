"""Gates that wait: order, width, cancellation, tools that fail, a model that is hostile."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.agents.calls import (
    CallItem,
    CallModel,
    CallTool,
    GenerateOptions,
    GoldCall,
    Outcome,
    check_item,
    compose_tools,
    draw_tasks,
    execution,
    generate_checked,
)
from weft.agents.calls.attempts import WaitingGates, model_attempts, rule_attempts
from weft.agents.calls.item import reference
from weft.agents.tools import Toolbox
from weft.agents.tools import tool as make_tool
from weft.errors import InputError
from weft.testing import FakeModel

TOOLS = compose_tools(40, seed=2)
GET = CallTool(
    "getPrice",
    "Retrieve the price of an item",
    {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
)
PAY = CallTool(
    "payBill",
    "Pay a bill for a customer",
    {
        "type": "object",
        "properties": {"price": {"type": "number"}, "customer": {"type": "string"}},
        "required": ["price", "customer"],
    },
)
CHAIN = CallItem(
    "Get the price of tea, then pay the bill for Ann with that price.",
    (GET, PAY),
    (
        GoldCall("getPrice", {"item": "tea"}),
        GoldCall("payBill", {"price": "$1.price", "customer": "Ann"}),
    ),
    "nested",
    "",
)


@make_tool(name="getPrice")
def get_price(item: str) -> dict[str, float]:
    """Retrieve the price of an item."""
    return {} if item == "nothing" else {"price": 2.5}


@make_tool(name="payBill")
def pay_bill(price: float, customer: str) -> str:
    """Pay a bill."""
    assert price == 2.5
    return "paid"


def test_a_result_goes_to_the_call_that_refers_to_it() -> None:
    assert check_item(CHAIN) is None
    assert asyncio.run(execution(CHAIN, Toolbox(get_price, pay_bill))) is None


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ((GoldCall("getPrice", {"item": "nothing"}), CHAIN.calls[1]), "empty_result"),
        (
            (CHAIN.calls[0], GoldCall("payBill", {"price": "$1.cost", "customer": "Ann"})),
            "bad_reference",
        ),
        (
            (CHAIN.calls[0], GoldCall("payBill", {"price": "$1", "customer": "Ann"})),
            "tool_failed",
        ),
    ],
)
def test_calls_that_fail_say_why(calls: tuple[GoldCall, ...], reason: str) -> None:
    item = dataclasses.replace(CHAIN, calls=calls)
    refusal = asyncio.run(execution(item, Toolbox(get_price, pay_bill)))
    assert refusal is not None
    assert refusal.reason == reason


def test_a_call_that_refers_to_one_that_cannot_run_is_not_run() -> None:
    assert asyncio.run(execution(CHAIN, Toolbox(pay_bill))) is None


def test_a_reference_to_a_later_call_is_refused() -> None:
    item = dataclasses.replace(CHAIN, calls=CHAIN.calls[::-1])
    refusal = check_item(item)
    assert refusal is not None
    assert refusal.reason == "bad_reference"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$2", (2, ())),
        ("$1.rows[0].id", (1, ("rows", 0, "id"))),
        ("$0", None),
        ("$1.", None),
        ("costs $5", None),
        (5, None),
    ],
)
def test_references(text: object, found: object) -> None:
    assert reference(text) == found


async def _all(attempts: Iterator[Awaitable[Outcome]], n: int, width: int) -> list[Outcome]:
    options = GenerateOptions(n, per_skeleton=99)
    return [one async for one in generate_checked(attempts, options, width)]


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 10**6))
@settings(deadline=None)
def test_outcomes_keep_their_order_and_no_more_than_width_are_at_work(
    width: int, n: int, seed: int
) -> None:
    rng = random.Random(seed)
    items = [dataclasses.replace(CHAIN, query=str(number)) for number in range(n + 20)]
    working, most, cancelled = 0, 0, 0

    async def attempt(item: CallItem) -> Outcome:
        nonlocal working, most, cancelled
        working, most = working + 1, max(most, working + 1)
        try:
            for _ in range(rng.randint(0, 5)):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        finally:
            working -= 1
        return item, None

    found = asyncio.run(_all((attempt(item) for item in items), n, width))
    assert [item.query for item, _ in found] == [str(number) for number in range(n)]
    assert most <= width
    assert working == 0


def test_a_slow_attempt_does_not_hold_up_those_behind_it() -> None:
    async def run() -> list[str]:
        release, begun = asyncio.Event(), []

        async def attempt(number: int) -> Outcome:
            begun.append(number)
            if number == 0:
                await release.wait()
            elif number == 5:
                release.set()
            return dataclasses.replace(CHAIN, query=str(number)), None

        found = await _all((attempt(number) for number in range(9)), 6, 2)
        assert begun[:6] == [0, 1, 2, 3, 4, 5]
        return [item.query for item, _ in found]

    assert asyncio.run(run()) == ["0", "1", "2", "3", "4", "5"]


def test_an_attempt_that_raises_cancels_the_others() -> None:
    stopped: list[str] = []

    async def waits() -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("one")
        raise AssertionError

    async def raises() -> Outcome:
        await asyncio.sleep(0)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        asyncio.run(_all(iter([raises(), waits(), waits()]), 3, 3))
    assert stopped == ["one", "one"]


def test_too_few_attempts_are_an_error() -> None:
    async def one() -> Outcome:
        return CHAIN, None

    with pytest.raises(InputError, match="1 of 2 items"):
        asyncio.run(_all(iter([one()]), 2, 4))


def answer(**change: Any) -> str:
    whole = {
        "query": "What is the price of green tea?",
        "calls": [{"name": "getPrice", "arguments": {"item": "green tea"}}],
        "ask": [],
    }
    return json.dumps(whole | change)


@pytest.mark.parametrize(
    ("text", "gate", "reason"),
    [
        (answer(), None, None),
        (f"Here it is:\n```json\n{answer()}\n```", None, None),
        ("I would rather not.", "proposal", "unreadable"),
        (answer(code="import os"), "proposal", "unreadable"),
        (answer(query=["a"]), "proposal", "unreadable"),
        (answer(query=" "), "proposal", "unreadable"),
        (answer(query="x" * 3000), "proposal", "unreadable"),
        (answer(calls="getPrice()"), "proposal", "unreadable"),
        (answer(calls=[{"name": "getPrice"}]), "proposal", "unreadable"),
        (answer(calls=[{"name": "getPrice", "arguments": []}]), "proposal", "unreadable"),
        (answer(calls=[{"name": "x", "arguments": {}}] * 13), "proposal", "unreadable"),
        (answer(ask=[1]), "proposal", "unreadable"),
        (answer(calls=[{"name": "rm", "arguments": {}}]), "format", "unknown_tool"),
        (answer(calls=[{"name": "getPrice", "arguments": {"item": 5}}]), "format", "misfit"),
        (answer(query="What is the price of tea in Rome?"), "semantic", "literal_absent"),
        ("[" * 5000, "proposal", "unreadable"),
    ],
)
def test_what_a_model_proposes_is_checked(text: str, gate: str | None, reason: str | None) -> None:
    model = CallModel(FakeModel([text]))
    _, refusal = asyncio.run(model.propose((GET,), "simple", 0))
    assert (refusal and refusal.gate, refusal and refusal.reason) == (gate, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"passes": true, "why": ""}', None),
        ('{"passes": false, "why": "the city is missing"}', "judged_wrong"),
        ('{"passes": "yes"}', "unreadable"),
        ("yes", "unreadable"),
        ("[true]", "unreadable"),
    ],
)
def test_a_verdict_must_be_readable(text: str, reason: str | None) -> None:
    refusal = asyncio.run(CallModel(FakeModel([text])).judge(CHAIN))
    assert (refusal and refusal.reason) == reason


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Look up what tea costs and pay Ann's bill with that price", False),
        ('"Find out the price of tea and use it to pay the bill of Ann."', False),
        ("Find out the price of coffee, then pay the bill for Ann.", True),
        ("Get the price of 2 teas, then pay the bill for Ann.", True),
        ("", True),
        ("tea Ann price bill " * 99, True),
    ],
)
def test_a_reworded_query_keeps_literals_and_intent(text: str, kept: bool) -> None:
    item, refusal = asyncio.run(CallModel(FakeModel([text])).reword(CHAIN, 0))
    assert (item is CHAIN) is kept
    assert (refusal is None) is not kept
    assert check_item(item) is None


def test_a_model_proposes_and_judges() -> None:
    def script(request: Any) -> Mapping[str, Any]:
        if "made for it" in request.messages[0].content:
            return {"passes": True, "why": "fits"}
        return json.loads(answer())  # type: ignore[no-any-return]

    async def run() -> list[Outcome]:
        client = FakeModel(script)
        model = CallModel(client)
        options = GenerateOptions(2, {"simple": 1.0}, per_skeleton=2)
        gates = WaitingGates(Toolbox(get_price), model, None)
        attempts = model_attempts((GET, PAY), options, model, gates)
        return [one async for one in generate_checked(attempts, options, 3)]

    found = asyncio.run(run())
    assert sum(refusal is None for _, refusal in found) == 2
    assert {item.calls[0].name for item, refusal in found if refusal is None} == {"getPrice"}


def test_rules_with_a_model_that_rewords_nothing_keep_their_text() -> None:
    async def run(gates: WaitingGates) -> list[str]:
        options = GenerateOptions(12, seed=4)
        attempts = rule_attempts(TOOLS, options, gates)
        return [item.query async for item, _ in generate_checked(attempts, options, 5)]

    plain = asyncio.run(run(WaitingGates()))
    assert asyncio.run(run(WaitingGates(reword=CallModel(FakeModel(["no"]))))) == plain


def test_tasks_are_the_same_for_a_seed() -> None:
    one, other = (draw_tasks(TOOLS, {"simple": 1.0, "parallel": 1.0}, 3, 7) for _ in range(2))
    assert [next(one) for _ in range(20)] == [next(other) for _ in range(20)]
