"""A chain of 100 with Prefect, on the server that it starts by itself."""

import asyncio
import sys

from prefect import flow, task


@task
async def step(value: int) -> int:
    """Do nothing."""
    return value + 1


@flow
async def chain(value: int) -> int:
    """One task after the other."""
    for _ in range(100):
        value = await step(value)
    return value


first = int(sys.argv[1])
if asyncio.run(chain(first)) != first + 100:
    sys.exit("not a chain of 100")
