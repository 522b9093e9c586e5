from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

ANSWERS = ["Lyon", "Paris"]


class State(TypedDict, total=False):
    question: str
    asked: int
    state: str


async def run(llm, folder: Path) -> object:
    async def ask(state: State) -> State:
        return {"question": (await llm.ainvoke("Ask a simple question")).content, "asked": 0}

    async def evaluate(state: State) -> State:
        answer = ANSWERS[state["asked"]]
        reply = await llm.ainvoke(f"Evaluate: {state['question']} {answer}")
        return {"asked": state["asked"] + 1, "state": reply.content}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("evaluate", evaluate)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "evaluate")
    graph.add_conditional_edges(
        "evaluate", lambda state: END if state["state"] == "correct" else "evaluate"
    )
    state = await graph.compile().ainvoke({})
    return {"asked": state["asked"], "state": state["state"]}
