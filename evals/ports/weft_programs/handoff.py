from pathlib import Path

import weft

AGENTS = {"desk": "You greet travellers.", "flights": "You book flights."}


def transfer_to_flights() -> str:
    """Hand the conversation to flights."""
    return "flights speaks now"


def reply_of(state: dict, reply: dict) -> dict:
    calls = [{"id": f"call-{len(state['messages'])}", **call} for call in reply["tool_calls"]]
    messages = [{"role": "assistant", "content": reply["text"], "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
    agent = calls[0]["name"].removeprefix("transfer_to_") if calls else state["agent"]
    return {"agent": agent, "done": not calls, "messages": [*state["messages"], *messages]}


flow = weft.Flow("handoff", models={"llm": "local:smollm2-135m-instruct"})
agents = flow.value(AGENTS)


def turn(state):
    system = "{{ agents[state.agent] }}"
    tools = [transfer_to_flights]
    reply = flow.model("llm", system=system, messages=state.messages, tools=tools)
    return flow.call(reply_of, state, reply)


start = {"agent": "desk", "messages": [{"role": "user", "content": "I need to go to Oslo"}]}
end = flow.loop(start, turn, until=lambda state: state.done, max=5)
flow.output(answer=end.messages[-1].content)


async def run(llm, folder: Path) -> object:
    return (await flow.run(models={"llm": llm}))["answer"]
