from pathlib import Path

from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


async def run(llm, folder: Path) -> object:
    agent = create_react_agent(llm, [add, multiply])
    state = await agent.ainvoke({"messages": [("user", "What is (3 + 4) * 2?")]})
    return state["messages"][-1].content
