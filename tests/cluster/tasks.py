"""Several awaitables at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def all_of(*work: Awaitable[T]) -> list[T]:
    """Their results, in order; raises the first error when all have ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.wait(tasks)
    return [task.result() for task in tasks]
