"""weft with what a real run has on: every event reaches a listener, every node has a retry policy
and is checked against the run's budget before it starts. No timeouts: see `on_weft_timeout`.
"""

from __future__ import annotations

from collections.abc import Callable

from evals.engine.cases import Case, Tally, Task
from evals.engine.systems import Program
from weft.core.budget import Budget
from weft.core.events import Event
from weft.core.ids import NodeId
from weft.engine import (
    Edge,
    Graph,
    Inputs,
    Limit,
    Node,
    NodeContext,
    Policy,
    Retry,
    Run,
    RunOptions,
)

POLICY = Policy(retry=Retry(), spends=True)
_OPTIONS = RunOptions(limit=Limit(Budget(tokens=1_000_000, money=1.0)))


def build(case: Case, tally: Tally, policy: Policy = POLICY) -> Program:
    """A `Graph` of one `Node` per task; every input arrives under its own name."""
    graph = Graph(case.name, [_node(task, case, tally, policy) for task in case.tasks])

    async def program() -> None:
        listener, seen = _counter()
        result = await Run(graph, _OPTIONS, listeners=[listener]).wait()
        if result.status != "succeeded" or seen() != 2 * len(case.tasks) + 2:
            raise RuntimeError(f"{result.status} with {seen()} events: {result.reasons}")

    return program


def _counter() -> tuple[Callable[[Event], None], Callable[[], int]]:
    seen = 0

    def listener(_: Event) -> None:
        nonlocal seen
        seen += 1

    return listener, lambda: seen


def _node(task: Task, case: Case, tally: Tally, policy: Policy) -> Node:
    async def work(_context: NodeContext, _inputs: Inputs) -> int:
        await tally.work(task.sleep_s)
        return 1

    parents = [case.tasks[place].name for place in task.parents]
    edges = tuple(Edge(NodeId(parent), f"from_{parent}") for parent in parents)
    return Node(NodeId(task.name), work, edges, policy=policy)
