from pathlib import Path

from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

AGENTS = {
    "desk": "You greet travellers.",
    "flights": "You book flights.",
}


async def run(llm, folder: Path) -> object:
    def agent(name: str):
        async def reply(state: MessagesState) -> dict:
            messages = [SystemMessage(AGENTS[name]), *state["messages"]]
            answer = await llm.ainvoke(messages)
            done = [ToolMessage("done", tool_call_id=call["id"]) for call in answer.tool_calls]
            return {"messages": [answer, *done]}

        return reply

    def route(state: MessagesState) -> str:
        if state["messages"][-1].type != "tool":
            return END
        return state["messages"][-2].tool_calls[0]["name"].removeprefix("transfer_to_")

    graph = StateGraph(MessagesState)
    for name in AGENTS:
        graph.add_node(name, agent(name))
        graph.add_conditional_edges(name, route, [*AGENTS, END])
    graph.add_edge(START, "desk")
    state = await graph.compile().ainvoke({"messages": [("user", "I need to go to Oslo")]})
    return state["messages"][-1].content
