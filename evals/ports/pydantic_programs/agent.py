from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter

PAID: list[int] = []


def find_order(order: int) -> str:
    """Look an order up."""
    return f"order {order}: a tea pot, 40 euros"


def pay(order: int, amount: int) -> str:
    """Pay money back."""
    PAID.append(order)
    return "paid"


async def run(llm, folder: Path) -> object:
    PAID.clear()
    file = folder / "messages.json"
    tools = [find_order, Tool(pay, requires_approval=True)]
    agent = Agent(llm.pydantic, tools=tools, output_type=[str, DeferredToolRequests])
    first = await agent.run("My tea pot broke")
    file.write_bytes(first.all_messages_json())
    call = first.output.approvals[0]
    history = ModelMessagesTypeAdapter.validate_json(file.read_bytes())
    yes = DeferredToolResults(approvals={call.tool_call_id: True})
    second = await agent.run(message_history=history, deferred_tool_results=yes)
    return {"asked": call.args_as_dict(), "answer": second.output, "paid": list(PAID)}
