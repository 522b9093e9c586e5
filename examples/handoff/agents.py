"""The tools of two agents, and the reducer of the state that they share."""

from typing import Any

import weft


@weft.tool
def transfer_to_billing() -> str:
    """Hand the conversation to billing."""
    return "billing speaks now"


@weft.tool
def transfer_to_desk() -> str:
    """Hand the conversation back to the desk."""
    return "the desk speaks now"


@weft.tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is refunded"


TOOLS = {tool.spec.name: tool for tool in (transfer_to_billing, transfer_to_desk, refund)}


def reduce_state(state: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The state after an answer: its messages appended, tools called, perhaps another agent."""
    messages, agent = list(state["messages"]), state["agent"]
    calls = [
        {"id": f"call_{len(messages)}_{index}", **call}
        for index, call in enumerate(answer["tool_calls"])
    ]
    messages.append({"role": "assistant", "content": answer["text"], "tool_calls": calls})
    for call in calls:
        result = TOOLS[call["name"]].function(**call["arguments"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if call["name"].startswith("transfer_to_"):
            agent = call["name"].removeprefix("transfer_to_")
    return {"agent": agent, "done": not calls, "messages": messages}
