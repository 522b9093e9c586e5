"""weft's engine alone, with what a real run has on: every event reaches a listener, every node has
a retry policy and is checked against the run's budget before it starts. Nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from evals.engine.cases import TALLY, Case, Message, Task, two_messages
from evals.engine.systems import Program
from weft import Budget
from weft.core.ids import NodeId
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
from weft.engine.kinds import Fragment, loop, map_over

_POLICY = Policy(retry=Retry(), spends=True)
_OPTIONS = RunOptions(limit=BudgetLimit(Budget(tokens=1_000_000, money=1.0)))


def build(_system: str, case: Case, _folder: Path) -> Program:
    """A `Graph` of one `Node` per task; every input arrives under its own name."""
    graph = Graph(case.name, _nodes(case))

    async def program() -> None:
        seen = 0

        def listener(_: object) -> None:
            nonlocal seen
            seen += 1

        result = await Run(graph, _OPTIONS, listeners=[listener]).wait()
        if result.status != "succeeded" or seen < 2 * len(case.tasks) + 2:
            raise RuntimeError(f"{result.status} with {seen} events: {result.reasons}")

    return program


def _nodes(case: Case) -> list[Node]:
    if case.shape == "map":
        items = list(range(len(case.tasks)))
        return [
            Node(NodeId("all"), map_over("items", _item), given={"items": items}, policy=_POLICY)
        ]
    if case.shape == "conversation":
        return [Node(NodeId("talk"), _talk(len(case.tasks)), policy=_POLICY)]
    return [_node(task, case) for task in case.tasks]


def _node(task: Task, case: Case) -> Node:
    async def work(_context: NodeContext, _inputs: Inputs) -> int:
        await TALLY.work(task.sleep_s)
        return 1

    parents = [case.tasks[place].name for place in task.parents]
    edges = tuple(Edge(NodeId(parent), f"from_{parent}") for parent in parents)
    return Node(NodeId(task.name), work, edges, policy=_POLICY)


def _item(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
    return Fragment((Node(scope, _step, given=bindings, policy=_POLICY),), scope)


async def _step(_: NodeContext, inputs: Inputs) -> int:
    await TALLY.work(0.0)
    return int(inputs["item"]) + 1


def _talk(turns: int) -> Any:
    talks = count(1)

    def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        return Fragment((Node(scope, _turn, given=bindings, policy=_POLICY),), scope)

    return loop(
        body,
        until=lambda _, number: number >= turns,
        max_iterations=turns,
        start=lambda _: (next(talks), []),
    )


async def _turn(_: NodeContext, inputs: Inputs) -> tuple[int, list[Message]]:
    await TALLY.work(0.0)
    talk, messages = inputs["value"]
    return talk, [*messages, *two_messages(talk, inputs["iteration"])]
