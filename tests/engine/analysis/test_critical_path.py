"""What a work sees of what lies ahead: its program's critical path, and the time it has left."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.virtual_run import node, play
from weft.core.budget import Budget
from weft.engine import BudgetLimit, Expand, Inputs, NodeContext


async def ahead(context: NodeContext, inputs: Inputs) -> tuple[float, float]:
    program = context.program
    return program.path, program.remaining


def test_the_path_of_a_call_and_of_its_program() -> None:
    played = play(
        node("long", ahead, weight=5),
        node("short", ahead, weight=1),
        node("mid", ahead, "long", weight=2),
        node("last", ahead, "mid", "short", weight=1),
    )
    assert played.value("long") == (8, 8)
    assert played.value("short") == (2, 8)
    assert played.value("mid") == (3, 3)
    assert played.value("last") == (1, 1)


def test_the_run_is_the_program() -> None:
    async def name(context: NodeContext, inputs: Inputs) -> str:
        return context.program.id

    played = play(node("a", name), node("b", name, "a"))
    assert played.value("a") == played.value("b") == played.result.run


def test_all_items_of_a_map_ask_from_the_same_place_and_other_nodes_from_others() -> None:
    async def place(context: NodeContext, inputs: Inputs) -> str:
        return context.program.node

    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        nodes = tuple(node(f"{context.scope}[{i}]", place) for i in range(3))
        return Expand(nodes, tuple(n.id for n in nodes))

    played = play(node("map", grows), node("after", place, "map"))
    items = set(played.value("map"))
    assert len(items) == 1
    assert [each.rpartition("/")[2] for each in (*items, played.value("after"))] == ["map", "after"]


def test_what_a_program_appends_is_ahead_of_it_too() -> None:
    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        nodes = tuple(node(f"{context.scope}/{i}", ahead, weight=i + 1) for i in range(3))
        return Expand(nodes, tuple(n.id for n in nodes))

    played = play(node("map", grows, weight=1), node("after", ahead, "map", weight=4))
    assert played.value("map") == [(6, 8), (7, 8), (8, 8)]
    assert played.value("after") == (4, 4)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=12))
def test_remaining_is_the_longest_path_of_what_has_not_ended(
    chains: list[tuple[int, int]],
) -> None:
    """Independent chains of unit steps: what remains is the longest rest of any of them."""
    seen: list[tuple[float, float]] = []

    async def step(context: NodeContext, inputs: Inputs) -> None:
        seen.append((loop_time(), context.program.remaining))
        await asyncio.sleep(1)

    def loop_time() -> float:
        return asyncio.get_running_loop().time()

    nodes = [
        node(f"{c}.{i}", step, *([f"{c}.{i - 1}"] if i else []), weight=weight)
        for c, (length, weight) in enumerate(chains)
        for i in range(length)
    ]
    play(*nodes)
    begun = seen[0][0]
    for at, remaining in seen:
        done = round(at - begun)
        assert remaining == max((length - done) * weight for length, weight in chains)


def test_the_time_left_is_the_least_of_timeout_budget_and_deadline() -> None:
    async def left(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        return context.time_left()

    def grows(context: NodeContext, inputs: Inputs) -> Any:
        async def work() -> Expand:
            return Expand((child,), (child.id,))

        child = node(f"{context.scope}/x", left)
        return work()

    limit = BudgetLimit(Budget(seconds=20))
    assert play(node("a", left)).value("a") is None
    assert play(node("a", left), deadline_s=10).value("a") == 9
    assert play(node("a", left, timeout_s=5), deadline_s=10).value("a") == 4
    assert play(node("a", grows, timeout_s=5)).value("a/x") == 4
    assert play(node("a", grows, limit=limit)).value("a/x") == 19
    degrading = BudgetLimit(Budget(seconds=20), "degrade")
    assert play(node("a", grows, limit=degrading)).value("a/x") is None


def test_the_work_left_is_that_of_nodes_which_spend() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> float | None:
        return context.program.work

    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        nodes = tuple(node(f"{context.scope}/{i}", work, weight=2, spends=True) for i in range(2))
        return Expand(nodes, tuple(n.id for n in nodes))

    played = play(
        node("model", work, weight=5, spends=True),
        node("tool", work, "model", weight=7),
        node("map", grows, "tool"),
        node("last", work, "map", weight=1, spends=True),
    )
    assert played.value("model") == 6  # what is to grow is not known yet
    assert played.value("tool") == 1
    assert played.value("map") == [5, 5]
    assert played.value("last") == 1


def test_a_call_knows_whether_more_of_its_session_follow() -> None:
    async def returns(context: NodeContext, inputs: Inputs) -> tuple[str, bool | None]:
        return context.program.caller, context.program.returns

    async def items(context: NodeContext, inputs: Inputs) -> Expand:
        nodes = [node(f"{context.scope}[{i}]", body) for i in range(2)]
        return Expand(tuple(nodes), tuple(n.id for n in nodes))

    async def body(context: NodeContext, inputs: Inputs) -> Expand:
        first = node(f"{context.scope}/draft", returns, spends=True)
        last = node(f"{context.scope}/check", returns, first.id, spends=True)
        return Expand((first, last), (first.id, last.id))

    async def agent(context: NodeContext, inputs: Inputs) -> Expand:
        turn = node(f"{context.scope}/turn", returns, spends=True)
        return Expand((turn,), (turn.id,))

    played = play(
        node("plan", returns, spends=True),
        node("notes", items, "plan"),
        node("agent", agent, "notes", spends=True),
        node("write", returns, "agent", spends=True),
        node("look", returns, "write"),
    )
    assert played.value("plan") == ("plan", True)
    assert played.value("notes[1]/draft") == ("notes[1]/draft", True)
    assert played.value("notes[1]/check") == ("notes[1]/check", None)
    assert played.value("agent/turn") == ("agent/turn", True)
    assert played.value("write") == ("write", None)
    assert played.value("look") == ("look", None)
