import json
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    proposal: dict
    approved: bool
    state: str


def approve(state: State) -> State:
    proposal = state["proposal"]
    return {"approved": interrupt(f"Refund {proposal['amount']} for order {proposal['order']}?")}


def pay(state: State) -> State:
    return {"state": f"paid {state['proposal']['amount']}"}


async def run(llm, folder: Path) -> object:
    async def propose(state: State) -> State:
        return {"proposal": json.loads((await llm.ainvoke("Propose a refund")).content)}

    graph = StateGraph(State)
    graph.add_node("propose", propose)
    graph.add_node("approve", approve)
    graph.add_node("pay", pay)
    graph.add_edge(START, "propose")
    graph.add_edge("propose", "approve")
    graph.add_conditional_edges("approve", lambda state: "pay" if state["approved"] else END)
    graph.add_edge("pay", END)
    config = {"configurable": {"thread_id": "17"}}
    async with AsyncSqliteSaver.from_conn_string(str(folder / "refund.sqlite")) as saver:
        app = graph.compile(checkpointer=saver)
        asked = (await app.ainvoke({}, config))["__interrupt__"][0].value
    async with AsyncSqliteSaver.from_conn_string(str(folder / "refund.sqlite")) as saver:
        app = graph.compile(checkpointer=saver)
        state = await app.ainvoke(Command(resume=True), config)
    return {"asked": asked, "state": state["state"]}
