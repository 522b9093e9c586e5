"""Runs an answer for as long as somebody wants it: until its client or the gateway goes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from weft.serving.gateway.problem import Problem, Refused
from weft.serving.gateway.response import Response

STOPPED = Problem(503, "the gateway is shutting down", "server_error", "shutting_down")


async def while_wanted(
    work: Coroutine[Any, Any, None], response: Response, receive: Receive, stopped: asyncio.Event
) -> None:
    """Run `work`, which writes `response`, until the client hangs up or `stopped` is set.

    Raises: what `work` raises; `ClientDisconnect`; `Refused` with `STOPPED`.
    """
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(response, receive))
    ending = asyncio.create_task(stopped.wait())
    tasks: tuple[asyncio.Task[Any], ...] = (working, gone, ending)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        left, stopping = gone.done(), ending.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not working.cancelled():
        working.result()
    elif left:
        raise ClientDisconnect
    elif stopping:
        raise Refused(STOPPED)


async def _gone(response: Response, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if response.complete:  # a server says so too when there is nothing more to send
        await asyncio.Event().wait()
