"""A chain of 100 with LangGraph and its SQLite saver, durability "sync"."""

import sqlite3
import sys
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """One number."""

    value: int


def step(state: State) -> State:
    """Do nothing."""
    return {"value": state["value"] + 1}


builder = StateGraph(State)
for number in range(100):
    builder.add_node(f"n{number}", step)
    builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
builder.add_edge("n99", END)
connection = sqlite3.connect("checkpoints.sqlite", check_same_thread=False)
graph = builder.compile(checkpointer=SqliteSaver(connection))

first = int(sys.argv[1])
config: Any = {"configurable": {"thread_id": sys.argv[1]}, "recursion_limit": 110}
if graph.invoke({"value": first}, config, durability="sync")["value"] != first + 100:
    sys.exit("not a chain of 100")
