from pathlib import Path

from pydantic_ai import Agent


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


async def run(llm, folder: Path) -> object:
    agent = Agent(llm.pydantic, tools=[add, multiply])
    return (await agent.run("What is (3 + 4) * 2?")).output
