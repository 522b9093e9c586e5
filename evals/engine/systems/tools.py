"""The tools of weft's flows, one for each way in which a task waits for others.

Flows in Python name these functions; beside a workflow file lies a copy of this file.
"""

from __future__ import annotations

import weft
from evals.engine.cases import TALLY, Message, two_messages


@weft.tool
async def step(value: int) -> int:
    """Do nothing, with one value."""
    await TALLY.work(0.0)
    return value + 1


@weft.tool
async def gather(values: list[int]) -> int:
    """Do nothing, with several values."""
    await TALLY.work(0.0)
    return len(values)


@weft.tool
async def rest(values: list[int], sleep_s: float) -> int:
    """Sleep."""
    await TALLY.work(sleep_s)
    return len(values)


@weft.tool
async def turn(talk: int, number: int, messages: list[Message]) -> list[Message]:
    """Add what is said in a turn of a conversation."""
    await TALLY.work(0.0)
    return [*messages, *two_messages(talk, number)]
