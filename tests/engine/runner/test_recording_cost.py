"""What a node costs, in Python calls: counted, since times differ from machine to machine.

What is repeated for every node is what remains of a large run; whoever adds to it says why.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.budget import Budget
from weft.core.ids import NodeId
from weft.durability.journal.sqlite import SqliteJournal
from weft.engine import (
    BudgetLimit,
    Edge,
    Graph,
    Inputs,
    Node,
    NodeContext,
    Policy,
    Retry,
    Run,
    RunOptions,
)

MOST_IN_ENGINE = 100
"""With a listener, a retry policy and a budget. Bare asyncio takes 50 on Python 3.11."""
MOST_IN_FLOW = 120
MOST_RECORDED = 300
"""With its four records in a journal, in a step of its own: that step is a transaction."""
MOST_RECORDED_TOGETHER = 230
"""The same where a thousand nodes share a step."""


Make = Callable[[int], Coroutine[Any, Any, Any]]


async def work(_: NodeContext, __: Inputs) -> int:
    return 1


@weft.tool(effect="pure")
async def same(x: int) -> int:
    return x


def engine(nodes: int) -> Coroutine[Any, Any, Any]:
    """A chain of nodes, with what a real run has on."""
    names = [NodeId(f"n{number}") for number in range(nodes)]
    policy = Policy(retry=Retry(), spends=True)
    chain = [Node(names[0], work, policy=policy)]
    chain += [Node(n, work, (Edge(before, "x"),), policy=policy) for before, n in pairwise(names)]
    options = RunOptions(limit=BudgetLimit(Budget(tokens=1_000)))
    return Run(Graph("chain", chain), options, listeners=[lambda _: None]).wait()


def flow(nodes: int) -> Coroutine[Any, Any, Any]:
    """The same chain of tools, prepared as a flow."""
    chain = weft.Flow("chain")
    node = chain.tool(same, x=0)
    for _ in range(nodes - 1):
        node = chain.tool(same, x=node)
    chain.output(x=node)
    return chain.start(durability="none").wait()


def recorded(journal: SqliteJournal) -> Make:
    """That chain, as it is run by default: in a journal."""

    def make(nodes: int) -> Coroutine[Any, Any, Any]:
        chain = weft.Flow("chain")
        node = chain.tool(same, x=0)
        for _ in range(nodes - 1):
            node = chain.tool(same, x=node)
        chain.output(x=node)
        return chain.start(journal=journal).wait()

    return make


def recorded_together(journal: SqliteJournal) -> Make:
    """As many nodes side by side."""

    def make(nodes: int) -> Coroutine[Any, Any, Any]:
        flow = weft.Flow("fan")
        flow.output(x=[flow.tool(same, x=number) for number in range(nodes)])
        return flow.start(journal=journal).wait()

    return make


def calls(make: Make, nodes: int) -> int:
    """How many calls, of functions and of what is built in, such a run takes."""
    count = 0

    def profile(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def main() -> None:
        run = make(nodes)
        sys.setprofile(profile)
        try:
            result = await run
        finally:
            sys.setprofile(None)
        assert result.status == "succeeded"

    asyncio.run(main())
    return count


def test_a_node_of_the_engine_takes_few_calls() -> None:
    calls(engine, 10)
    assert (calls(engine, 300) - calls(engine, 100)) / 200 <= MOST_IN_ENGINE


def test_a_tool_in_a_flow_takes_few_calls() -> None:
    calls(flow, 10)
    assert (calls(flow, 300) - calls(flow, 100)) / 200 <= MOST_IN_FLOW


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal.sqlite")) as made:
        yield made


def test_a_recorded_tool_takes_few_calls(journal: SqliteJournal) -> None:
    make = recorded(journal)
    for nodes in (10, 100, 300):
        calls(make, nodes)  # what is the same in every run is kept once
    assert (calls(make, 300) - calls(make, 100)) / 200 <= MOST_RECORDED


def test_recorded_tools_that_share_a_step_take_fewer(journal: SqliteJournal) -> None:
    make = recorded_together(journal)
    for nodes in (10, 100, 300):
        calls(make, nodes)
    assert (calls(make, 300) - calls(make, 100)) / 200 <= MOST_RECORDED_TOGETHER
