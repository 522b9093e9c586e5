"""What another work comes to, as the value of a node. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.engine.node import Ask, Grow, NodeContext, Partial, Skip, Then


def followed(result: Any, convert: Callable[[Any], Any]) -> Any:
    """`convert` of a work's value, also where the work grows nodes or asks before it has one."""
    if isinstance(result, (Grow, Ask)):
        return replace(result, then=_then(result.then, convert))
    if isinstance(result, Partial):
        return replace(result, value=convert(result.value))
    return result if isinstance(result, Skip) else convert(result)


def _then(then: Then | None, convert: Callable[[Any], Any]) -> Then:
    async def work(context: NodeContext, value: Any) -> Any:
        return followed(value if then is None else await then(context, value), convert)

    return work
