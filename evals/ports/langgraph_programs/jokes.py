import json
import operator
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict, total=False):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


async def run(llm, folder: Path) -> object:
    async def subjects(state: State) -> State:
        reply = await llm.ainvoke(f"Three subjects of {state['topic']}, as a JSON list")
        return {"subjects": json.loads(reply.content)}

    async def joke(task: dict) -> State:
        return {"jokes": [(await llm.ainvoke(f"A joke about {task['subject']}")).content]}

    async def best(state: State) -> State:
        reply = await llm.ainvoke("The number of the best:\n" + "\n".join(state["jokes"]))
        return {"best": state["jokes"][int(reply.content)]}

    graph = StateGraph(State)
    graph.add_node("subjects", subjects)
    graph.add_node("joke", joke)
    graph.add_node("best", best)
    graph.add_edge(START, "subjects")
    graph.add_conditional_edges(
        "subjects",
        lambda state: [Send("joke", {"subject": s}) for s in state["subjects"]],
        ["joke"],
    )
    graph.add_edge("joke", "best")
    graph.add_edge("best", END)
    return (await graph.compile().ainvoke({"topic": "animals"}))["best"]
