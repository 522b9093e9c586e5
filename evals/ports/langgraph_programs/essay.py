from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    draft: str
    criticism: str
    rounds: int


async def run(llm, folder: Path) -> object:
    async def write(state: State) -> State:
        before = f" Before: {state['draft']}. {state['criticism']}" if "draft" in state else ""
        reply = await llm.ainvoke(f"Write about bees.{before}")
        return {"draft": reply.content, "rounds": state.get("rounds", 0) + 1}

    async def criticise(state: State) -> State:
        return {"criticism": (await llm.ainvoke(f"Criticise: {state['draft']}")).content}

    def proceed(state: State) -> str:
        return END if state["criticism"] == "good" or state["rounds"] == 5 else "write"

    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("criticise", criticise)
    graph.add_edge(START, "write")
    graph.add_edge("write", "criticise")
    graph.add_conditional_edges("criticise", proceed, ["write", END])
    return (await graph.compile().ainvoke({}))["draft"]
