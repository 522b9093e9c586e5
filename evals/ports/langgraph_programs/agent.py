from pathlib import Path

from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt

PAID: list[int] = []


@tool
def find_order(order: int) -> str:
    """Look an order up."""
    return f"order {order}: a tea pot, 40 euros"


@tool
def pay(order: int, amount: int) -> str:
    """Pay money back."""
    if not interrupt({"order": order, "amount": amount}):
        return "refused"
    PAID.append(order)
    return "paid"


async def run(llm, folder: Path) -> object:
    PAID.clear()
    config = {"configurable": {"thread_id": "17"}}
    async with AsyncSqliteSaver.from_conn_string(str(folder / "agent.sqlite")) as saver:
        agent = create_react_agent(llm, [find_order, pay], checkpointer=saver)
        state = await agent.ainvoke({"messages": [("user", "My tea pot broke")]}, config)
        asked = state["__interrupt__"][0].value
    async with AsyncSqliteSaver.from_conn_string(str(folder / "agent.sqlite")) as saver:
        agent = create_react_agent(llm, [find_order, pay], checkpointer=saver)
        state = await agent.ainvoke(Command(resume=True), config)
    return {"asked": asked, "answer": state["messages"][-1].content, "paid": list(PAID)}
