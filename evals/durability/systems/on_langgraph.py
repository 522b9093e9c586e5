"""LangGraph with its SQLite checkpointer, called synchronously, durability "sync".

That is its fastest way here: `ainvoke` with `AsyncSqliteSaver` took five times as long.
"""

from __future__ import annotations

import operator
import sqlite3
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from evals.durability.cases import CHAIN, NODES, WIDTH, said, turns_of


class Counted(TypedDict):
    """How many nodes have run."""

    done: Annotated[int, operator.add]


class Talk(TypedDict):
    """A conversation, to which each turn adds."""

    talk: int
    messages: Annotated[list[tuple[str, str]], operator.add]


class System:
    """One database for all threads."""

    def __init__(self, system: str, case: str, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / f"{system}.sqlite", check_same_thread=False)
        self._case = case
        self._runs = 0
        self._graph = _builder(case).compile(checkpointer=SqliteSaver(self._connection))

    def run(self) -> float:
        self._runs += 1
        config: Any = {
            "configurable": {"thread_id": f"run{self._runs}"},
            "recursion_limit": 10 + CHAIN,
        }
        start: Any = {"done": 0} if self._case in NODES else {"talk": self._runs, "messages": []}
        began = perf_counter()
        state = self._graph.invoke(start, config, durability="sync")
        took = perf_counter() - began
        due = NODES.get(self._case)
        if due is None:
            due = 2 * turns_of(self._case)
            if len(state["messages"]) != due:
                raise RuntimeError(f"{len(state['messages'])} of {due} messages")
        elif state["done"] != due:
            raise RuntimeError(f"{state['done']} of {due} nodes in the final state")
        return took

    def close(self) -> None:
        self._connection.close()


def _builder(case: str) -> Any:
    if case == "chain_100":
        return _chain(StateGraph(Counted), [_count] * CHAIN)
    if case == "fanout_1000":
        return _fanout(StateGraph(Counted))
    return _chain(StateGraph(Talk), [_turn(turn) for turn in range(turns_of(case))])


def _chain(builder: Any, works: list[Any]) -> Any:
    for index, work in enumerate(works):
        builder.add_node(f"n{index}", work)
        builder.add_edge(f"n{index - 1}" if index else START, f"n{index}")
    builder.add_edge(f"n{len(works) - 1}", END)
    return builder


def _fanout(builder: Any) -> Any:
    def spread(_state: Counted) -> list[Send]:
        return [Send("branch", {"done": 0})] * WIDTH

    for name in ("source", "branch", "join"):
        builder.add_node(name, _count)
    builder.add_edge(START, "source")
    builder.add_conditional_edges("source", spread, ["branch"])
    builder.add_edge("branch", "join")
    builder.add_edge("join", END)
    return builder


def _count(_state: Counted) -> dict[str, int]:
    return {"done": 1}


def _turn(turn: int) -> Any:
    def work(state: Talk) -> dict[str, list[tuple[str, str]]]:
        return {"messages": [(r, said(state["talk"], turn, r)) for r in ("user", "assistant")]}

    return work
