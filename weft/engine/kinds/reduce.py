"""Many values into one with a plain function, in declared order."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from weft.engine.node import Inputs, NodeContext, Streamed, Work


def reduce_with(function: Callable[[list[Any]], Any], over: str) -> Work:
    """A work whose value is `function` of the complete list `inputs[over]`."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        async with aclosing(_values(context, inputs[over])) as source:
            values = [value async for value in source]
        result = function(values)
        return await result if inspect.isawaitable(result) else result

    return work


def fold(step: Callable[[Any, Any], Any], initial: Any, over: str) -> Work:
    """A work that folds `step(accumulated, item)` over `inputs[over]`, item by item.

    On a streaming edge it takes each item as soon as that item and those before it are done, so
    that folding and producing overlap; the order, and so the result, is that of the items.
    """

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        accumulated = initial
        async with aclosing(_values(context, inputs[over])) as source:
            async for value in source:
                accumulated = step(accumulated, value)
                if inspect.isawaitable(accumulated):
                    accumulated = await accumulated
        return accumulated

    return work


async def _values(context: NodeContext, source: Any) -> AsyncGenerator[Any, None]:
    if isinstance(source, Streamed):
        async with aclosing(context.items(source)) as items:
            async for value in items:
                yield value
    else:
        for value in source:
            yield value
