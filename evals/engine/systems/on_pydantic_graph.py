"""pydantic-graph: steps and edges; a map over the branches of a fan-out; a join before each node
that has several parents.

Spans are switched off, which is faster than its default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pydantic_graph import GraphBuilder, StepContext, reduce_sum

from evals.engine.cases import Case, Tally, Task
from evals.engine.systems import Program

_Builder: TypeAlias = GraphBuilder[None, None, None, int]
_Context: TypeAlias = StepContext[None, None, Any]


def build(case: Case, tally: Tally) -> Program:
    """The built graph of `case`."""
    builder = _Builder(output_type=int, auto_instrument=False)
    if case.shape == "fanout":
        _add_fanout(builder, case, tally)
    else:
        _add_tasks(builder, case, tally)
    graph = builder.build()

    async def program() -> None:
        await graph.run(infer_name=False)

    return program


def _add_fanout(builder: _Builder, case: Case, tally: Tally) -> None:
    width = len(case.tasks) - 2

    async def source(_: _Context) -> range:
        await tally.work(0.0)
        return range(width)

    first = builder.step(source, node_id="source")
    branch = builder.step(_work(case.tasks[1], tally), node_id="branch")
    join = builder.join(reduce_sum, initial=0, node_id="join")
    last = builder.step(_work(case.tasks[-1], tally), node_id="last")
    builder.add(
        builder.edge_from(builder.start_node).to(first),
        builder.edge_from(first).map().to(branch),
        builder.edge_from(branch).to(join),
        builder.edge_from(join).to(last),
        builder.edge_from(last).to(builder.end_node),
    )


def _add_tasks(builder: _Builder, case: Case, tally: Tally) -> None:
    steps = [builder.step(_work(task, tally), node_id=task.name) for task in case.tasks]
    doors: list[Any] = list(steps)
    for place, task in enumerate(case.tasks):
        if len(task.parents) > 1:
            doors[place] = builder.join(reduce_sum, initial=0, node_id=f"join_{task.name}")
            builder.add(builder.edge_from(doors[place]).to(steps[place]))
    builder.add(builder.edge_from(builder.start_node).to(steps[0]))
    for place, children in enumerate(case.children()):
        if children:
            builder.add(builder.edge_from(steps[place]).to(*(doors[child] for child in children)))
    builder.add(builder.edge_from(steps[-1]).to(builder.end_node))


def _work(task: Task, tally: Tally) -> Callable[[_Context], Awaitable[int]]:
    async def work(_: _Context) -> int:
        await tally.work(task.sleep_s)
        return 1

    return work
