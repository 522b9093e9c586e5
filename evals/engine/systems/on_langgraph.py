"""LangGraph without a checkpointer and with a state of one counter.

One static node per task, and an edge from the list of its parents where it has several; a fan-out
is a `Send` per branch, which is faster here than a static node per branch.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from evals.engine.cases import Case, Tally, Task
from evals.engine.systems import Program


class State(TypedDict):
    """What the nodes share: how many of them have run, added up by a reducer."""

    done: Annotated[int, operator.add]


def build(case: Case, tally: Tally) -> Program:
    """The compiled graph of `case`."""
    builder = StateGraph(State)
    if case.shape == "fanout":
        _add_fanout(builder, case, tally)
    else:
        _add_tasks(builder, case, tally)
    graph = builder.compile()
    config: Any = {"recursion_limit": 10 + len(case.tasks)}

    async def program() -> None:
        state = await graph.ainvoke({"done": 0}, config)
        if state["done"] != len(case.tasks):
            raise RuntimeError(f"{state['done']} of {len(case.tasks)} nodes in the final state")

    return program


def _add_fanout(builder: Any, case: Case, tally: Tally) -> None:
    width = len(case.tasks) - 2

    def spread(_state: State) -> list[Send]:
        return [Send("branch", {"done": 0})] * width

    builder.add_node("source", _work(case.tasks[0], tally))
    builder.add_node("branch", _work(case.tasks[1], tally))
    builder.add_node("join", _work(case.tasks[-1], tally))
    builder.add_edge(START, "source")
    builder.add_conditional_edges("source", spread, ["branch"])
    builder.add_edge("branch", "join")
    builder.add_edge("join", END)


def _add_tasks(builder: Any, case: Case, tally: Tally) -> None:
    names = [task.name for task in case.tasks]
    for task in case.tasks:
        builder.add_node(task.name, _work(task, tally))
    builder.add_edge(START, names[0])
    for task in case.tasks[1:]:
        parents = [names[parent] for parent in task.parents]
        builder.add_edge(parents if len(parents) > 1 else parents[0], task.name)
    builder.add_edge(names[-1], END)


def _work(task: Task, tally: Tally) -> Any:
    async def work(_state: State) -> dict[str, int]:
        await tally.work(task.sleep_s)
        return {"done": 1}

    return work
