"""What a strategy's work comes to, as the value of a node. Knows no strategy and no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.engine.node import Ask, Grow, NodeContext, Skip, Then


def followed(result: Any, convert: Callable[[Any], Any]) -> Any:
    """`convert` of a work's value, also where the work grows nodes or asks before it has one."""
    if isinstance(result, (Grow, Ask)):
        return replace(result, then=_then(result.then, convert))
    return result if isinstance(result, Skip) else convert(result)


def _then(then: Then | None, convert: Callable[[Any], Any]) -> Then:
    async def work(context: NodeContext, value: Any) -> Any:
        return followed(value if then is None else await then(context, value), convert)

    return work
