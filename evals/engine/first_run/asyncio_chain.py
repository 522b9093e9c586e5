"""A chain of 100 tasks, one after the other."""

import asyncio
import sys


async def step(value: int) -> int:
    """Do nothing."""
    return value + 1


async def main() -> None:
    """Run it once."""
    first = value = int(sys.argv[1])
    for _ in range(100):
        value = await asyncio.create_task(step(value))
    if value != first + 100:
        sys.exit("not a chain of 100")


asyncio.run(main())
