"""LangGraph: without a checkpointer, with its SQLite saver, and with that and a `DeltaChannel`.

One static node per task, and an edge from the list of its parents where it has several; a fan-out
and a map are a `Send` per branch, which is faster here than a static node per branch. The state is
one counter, or a list of messages, each with a reducer. With the saver it is called synchronously,
durability "sync", a thread for each run: `ainvoke` on `AsyncSqliteSaver` took five times as long.
"""

from __future__ import annotations

import operator
import sqlite3
import time
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from evals.engine.cases import ROLES, TALLY, Case, Message, Task, two_messages
from evals.engine.systems import Program, Unsupported


class Counted(TypedDict):
    """How many nodes have run, added up by a reducer."""

    done: Annotated[int, operator.add]


class Talk(TypedDict):
    """A conversation, to which each turn adds."""

    talk: int
    messages: Annotated[list[Message], operator.add]


def _extend(messages: list[Message], writes: Sequence[list[Message]]) -> list[Message]:
    return [*messages, *chain.from_iterable(writes)]


class DeltaTalk(TypedDict):
    """The same, of which a checkpoint has only what was added."""

    talk: int
    messages: Annotated[list[Message], DeltaChannel(_extend)]


def build(system: str, case: Case, folder: Path) -> Program:
    """The compiled graph of `case`, and how one calls it."""
    if system == "langgraph":
        return _in_memory(_builder(case, Talk, blocks=False).compile(), case)
    if system == "langgraph_delta" and case.shape != "conversation":
        raise Unsupported("a DeltaChannel changes nothing where the state is one counter")
    state = DeltaTalk if system == "langgraph_delta" else Talk
    connection = sqlite3.connect(folder / f"{system}.sqlite", check_same_thread=False)
    builder = _builder(case, state, blocks=True)
    return _stored(builder.compile(checkpointer=SqliteSaver(connection)), case)


def _in_memory(graph: Any, case: Case) -> Program:
    runs = count(1)

    async def program() -> None:
        config = {"recursion_limit": 10 + len(case.tasks)}
        _check(await graph.ainvoke(_start(case, next(runs)), config), case)

    return program


def _stored(graph: Any, case: Case) -> Program:
    runs, threads = count(1), uuid4()

    def program() -> None:
        run = next(runs)
        config = {
            "configurable": {"thread_id": f"{threads}-{run}"},
            "recursion_limit": 10 + len(case.tasks),
        }
        _check(graph.invoke(_start(case, run), config, durability="sync"), case)

    return program


def _start(case: Case, run: int) -> dict[str, Any]:
    return {"talk": run, "messages": []} if case.shape == "conversation" else {"done": 0}


def _check(state: dict[str, Any], case: Case) -> None:
    talked = case.shape == "conversation"
    found = len(state["messages"]) / len(ROLES) if talked else state["done"]
    if found != len(case.tasks):
        raise RuntimeError(f"{found} of {len(case.tasks)} nodes in the final state")


def _builder(case: Case, talk: type, *, blocks: bool) -> Any:
    if case.shape == "conversation":
        return _tasks(StateGraph(talk), case, [_turn(n, blocks) for n in range(len(case.tasks))])
    if case.shape in ("fanout", "map"):
        return _branches(StateGraph(Counted), case, blocks)
    return _tasks(StateGraph(Counted), case, [_work(task, blocks) for task in case.tasks])


def _branches(builder: Any, case: Case, blocks: bool) -> Any:
    ends = case.shape == "fanout"
    width = len(case.tasks) - 2 * ends

    def spread(_state: Counted) -> list[Send]:
        return [Send("branch", {"done": 0})] * width

    builder.add_node("branch", _work(case.tasks[1], blocks))
    if ends:
        builder.add_node("source", _work(case.tasks[0], blocks))
        builder.add_node("join", _work(case.tasks[-1], blocks))
        builder.add_edge(START, "source")
        builder.add_edge("branch", "join")
        builder.add_edge("join", END)
    builder.add_conditional_edges("source" if ends else START, spread, ["branch"])
    return builder


def _tasks(builder: Any, case: Case, nodes: Sequence[Any]) -> Any:
    names = [task.name for task in case.tasks]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    builder.add_edge(START, names[0])
    for task in case.tasks[1:]:
        parents = [names[parent] for parent in task.parents]
        builder.add_edge(parents if len(parents) > 1 else parents[0], task.name)
    builder.add_edge(names[-1], END)
    return builder


def _work(task: Task, blocks: bool) -> Any:
    async def work(_state: Counted) -> dict[str, int]:
        await TALLY.work(task.sleep_s)
        return {"done": 1}

    def work_blocking(_state: Counted) -> dict[str, int]:
        TALLY.done += 1
        if task.sleep_s:
            time.sleep(task.sleep_s)
        return {"done": 1}

    return work_blocking if blocks else work


def _turn(number: int, blocks: bool) -> Any:
    async def turn(state: Any) -> dict[str, list[Message]]:
        return turn_blocking(state)

    def turn_blocking(state: Any) -> dict[str, list[Message]]:
        TALLY.done += 1
        return {"messages": two_messages(state["talk"], number)}

    return turn_blocking if blocks else turn
