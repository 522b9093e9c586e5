from pathlib import Path

from langchain_core.messages import SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph

AGENTS = {
    "desk": "You greet travellers.",
    "flights": "You book flights.",
}


async def run(llm, folder: Path) -> object:
    def agent(name: str):
        async def reply(state: MessagesState) -> dict:
            messages = [SystemMessage(AGENTS[name]), *state["messages"]]
            return {"messages": [await llm.ainvoke(messages)]}

        return reply

    def route(state: MessagesState) -> str:
        calls = state["messages"][-1].tool_calls
        return calls[0]["name"].removeprefix("transfer_to_") if calls else END

    graph = StateGraph(MessagesState)
    for name in AGENTS:
        graph.add_node(name, agent(name))
        graph.add_conditional_edges(name, route, [*AGENTS, END])
    graph.add_edge(START, "desk")
    state = await graph.compile().ainvoke({"messages": [("user", "I need to go to Oslo")]})
    return state["messages"][-1].content
