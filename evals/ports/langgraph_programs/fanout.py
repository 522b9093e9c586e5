import operator
from collections import Counter
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

CALLS: Counter[int] = Counter()


class State(TypedDict, total=False):
    items: list[int]
    results: Annotated[list[int | None], operator.add]


def fetch(item: int) -> int:
    CALLS[item] += 1
    if item % 50 == 0 and CALLS[item] == 1:
        raise ConnectionError("try again")
    if item % 100 == 7:
        raise ValueError("never works")
    return item


async def attempt(task: dict) -> State:
    try:
        return {"results": [fetch(task["item"])]}
    except ValueError:
        return {"results": [None]}


async def run(llm, folder: Path) -> object:
    CALLS.clear()
    graph = StateGraph(State)
    retry = RetryPolicy(max_attempts=3, initial_interval=0.001, retry_on=ConnectionError)
    graph.add_node("fetch", attempt, retry_policy=retry)
    graph.add_conditional_edges(
        START, lambda state: [Send("fetch", {"item": item}) for item in state["items"]], ["fetch"]
    )
    graph.add_edge("fetch", END)
    state = await graph.compile().ainvoke({"items": list(range(500))}, {"max_concurrency": 20})
    failed = sum(result is None for result in state["results"])
    return {"done": 500 - failed, "failed": failed, "calls": CALLS.total()}
