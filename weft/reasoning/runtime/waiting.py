"""Waiting for threads that run as nodes. Knows no grammar."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from weft.core.errors import Cancelled
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.engine import Node, NodeContext


async def run_all(
    context: NodeContext,
    nodes: Sequence[Node],
    *,
    primed: asyncio.Event | None = None,
    enough: int | None = None,
) -> Mapping[NodeId, Outcome]:
    """Append `nodes` and wait until all have ended; how each of them ended.

    `primed`: the others are appended once the first has set it, or has ended. `enough`: when so
    many have ended the others are cancelled, or never begin.
    """
    why = f"{enough} of {len(nodes)} threads are enough"
    never = Outcome("cancelled", failure=Cancelled(why).failure(), attempts=0)
    outcomes = {node.id: never for node in nodes}
    waiting: set[NodeId] = set()
    ended: set[NodeId] = set()

    def begin(some: Sequence[Node]) -> None:
        context.append(some)
        for node in some:
            waiting.add(node.id)
            group.create_task(watch(node.id))

    async def watch(node: NodeId) -> None:
        outcomes[node] = await context.outcome(node)
        waiting.discard(node)
        ended.add(node)
        if primed is not None:
            primed.set()
        if len(ended) == enough:
            for other in waiting:
                context.cancel(other, why)

    async with asyncio.TaskGroup() as group:
        if primed is None:
            begin(nodes)
        else:
            begin(nodes[:1])
            await primed.wait()
            if enough is None or len(ended) < enough:
                begin(nodes[1:])
    return outcomes
