"""pydantic-graph: steps and edges; a map over the branches of a fan-out; a join before each node
that has several parents.

Spans are switched off, which is faster than its default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_graph import GraphBuilder, StepContext, reduce_sum

from evals.engine.cases import ROLES, TALLY, Case, Message, Task, two_messages
from evals.engine.systems import Program


@dataclass(slots=True)
class Talk:
    """A conversation, to which each turn adds."""

    number: int
    messages: list[Message] = field(default_factory=list)


_Builder: TypeAlias = GraphBuilder[Talk, None, None, int]
_Context: TypeAlias = StepContext[Talk, None, Any]


def build(_system: str, case: Case, _folder: Path) -> Program:
    """The built graph of `case`."""
    builder = _Builder(state_type=Talk, output_type=int, auto_instrument=False)
    if case.shape in ("fanout", "map"):
        _add_branches(builder, case)
    else:
        _add_tasks(builder, case)
    graph = builder.build()
    runs = count(1)

    async def program() -> None:
        talk = Talk(next(runs))
        await graph.run(state=talk, infer_name=False)
        if case.shape == "conversation" and len(talk.messages) != len(case.tasks) * len(ROLES):
            raise RuntimeError(f"{len(talk.messages)} messages")

    return program


def _add_branches(builder: _Builder, case: Case) -> None:
    """A map goes over what a step returns, so that of the case itself needs one step more."""
    ends = case.shape == "fanout"
    width = len(case.tasks) - 2 * ends

    async def source(_: _Context) -> range:
        if ends:
            await TALLY.work(0.0)
        return range(width)

    first = builder.step(source, node_id="source")
    branch = builder.step(_work(case.tasks[1]), node_id="branch")
    join = builder.join(reduce_sum, initial=0, node_id="join")
    builder.add(
        builder.edge_from(builder.start_node).to(first),
        builder.edge_from(first).map().to(branch),
        builder.edge_from(branch).to(join),
    )
    if not ends:
        builder.add(builder.edge_from(join).to(builder.end_node))
        return
    last = builder.step(_work(case.tasks[-1]), node_id="last")
    builder.add(
        builder.edge_from(join).to(last),
        builder.edge_from(last).to(builder.end_node),
    )


def _add_tasks(builder: _Builder, case: Case) -> None:
    talks = case.shape == "conversation"
    steps = [
        builder.step(_turn(place) if talks else _work(task), node_id=task.name)
        for place, task in enumerate(case.tasks)
    ]
    entries: list[Any] = list(steps)
    for place, task in enumerate(case.tasks):
        if len(task.parents) > 1:
            entries[place] = builder.join(reduce_sum, initial=0, node_id=f"join_{task.name}")
            builder.add(builder.edge_from(entries[place]).to(steps[place]))
    builder.add(builder.edge_from(builder.start_node).to(steps[0]))
    for place, children in enumerate(case.children()):
        if children:
            builder.add(builder.edge_from(steps[place]).to(*(entries[child] for child in children)))
    builder.add(builder.edge_from(steps[-1]).to(builder.end_node))


def _work(task: Task) -> Callable[[_Context], Awaitable[int]]:
    async def work(_: _Context) -> int:
        await TALLY.work(task.sleep_s)
        return 1

    return work


def _turn(number: int) -> Callable[[_Context], Awaitable[int]]:
    async def turn(context: _Context) -> int:
        await TALLY.work(0.0)
        context.state.messages += two_messages(context.state.number, number)
        return 1

    return turn
