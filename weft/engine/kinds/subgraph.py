"""A whole body in the place of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.engine.kinds.body import Body, grow_one
from weft.engine.node import Grow, Inputs, NodeContext, Work


def subgraph(
    body: Body, bindings: Callable[[Inputs], Mapping[str, Any]] = lambda inputs: inputs
) -> Work:
    """A work that runs `body` once, with `bindings(inputs)`; the body's value is the value."""

    async def work(context: NodeContext, inputs: Inputs) -> Grow:
        return await grow_one(context, context.scope, body, bindings(inputs))

    return work
