from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


async def turn(llm, file: Path, text: str) -> str:
    async def reply(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("reply", reply)
    graph.add_edge(START, "reply")
    config = {"configurable": {"thread_id": "ada"}}
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        chat = graph.compile(checkpointer=saver)
        state = await chat.ainvoke({"messages": [("user", text)]}, config)
    return state["messages"][-1].content


async def run(llm, folder: Path) -> object:
    file = folder / "chat.sqlite"
    first = await turn(llm, file, "My name is Ada")
    return [first, await turn(llm, file, "What is my name?")]
