"""A chain of 100 with LangGraph, without a checkpointer."""

import asyncio
import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    """One number."""

    value: int


async def step(state: State) -> State:
    """Do nothing."""
    return {"value": state["value"] + 1}


builder = StateGraph(State)
for number in range(100):
    builder.add_node(f"n{number}", step)
    builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
builder.add_edge("n99", END)
graph = builder.compile()

first = int(sys.argv[1])
if asyncio.run(graph.ainvoke({"value": first}, {"recursion_limit": 110}))["value"] != first + 100:
    sys.exit("not a chain of 100")
