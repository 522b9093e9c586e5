from pathlib import Path

import weft


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


async def run(llm, folder: Path) -> object:
    answer = await weft.ask(
        "What is (3 + 4) * 2?", tools=[add, multiply], model=llm, agent="parallel-react"
    )
    return answer.value
