import operator
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

PROMPTS = {"short": "Even or odd: {}", "careful": "Think step by step. Even or odd: {}"}
CASES = [(number, "odd" if number % 2 else "even") for number in range(50)]


class State(TypedDict, total=False):
    results: Annotated[list[tuple[str, bool]], operator.add]


def spread(state: State) -> list[Send]:
    return [
        Send("ask", {"name": name, "number": number, "expected": expected})
        for name in PROMPTS
        for number, expected in CASES
    ]


async def run(llm, folder: Path) -> object:
    async def ask(task: dict) -> State:
        reply = await llm.ainvoke(PROMPTS[task["name"]].format(task["number"]))
        return {"results": [(task["name"], reply.content == task["expected"])]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, spread, ["ask"])
    graph.add_edge("ask", END)
    results = (await graph.compile().ainvoke({}))["results"]
    return {
        name: sum(right for which, right in results if which == name) / len(CASES)
        for name in PROMPTS
    }
