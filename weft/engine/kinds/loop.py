"""A body that is repeated until a condition holds, at most so many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.core.errors import LoopLimit
from weft.core.ids import iteration
from weft.engine.kinds.body import Body, grow_one
from weft.engine.node import Grow, Inputs, NodeContext, Work

Until = Callable[[Any, int], bool]


def loop(
    body: Body,
    *,
    until: Until,
    max_iterations: int,
    start: Callable[[Inputs], Any] | None = None,
    on_limit: str = "last",
    bound: Mapping[str, str] | None = None,
) -> Work:
    """A work that repeats `body` until `until(value, iteration)` is true (iterations from 1).

    The body gets the bindings "value", first `start(inputs)` or None, then what the iteration
    before came to, and "iteration"; `bound` renames them. The value is that of the last iteration.
    `on_limit`: after `max_iterations`, "last" takes the last value, "fail" raises `LoopLimit`.
    """
    if max_iterations < 1:
        raise ValueError(f"a loop runs at least once, got {max_iterations}")
    names = {"value": "value", "iteration": "iteration", **(bound or {})}

    async def work(context: NodeContext, inputs: Inputs) -> Grow:
        return await repeat(context, start(inputs) if start else None, 1)

    async def repeat(context: NodeContext, value: Any, number: int) -> Grow:
        async def then(context: NodeContext, values: list[Any]) -> Any:
            outcome = values[0] if values else None
            if until(outcome, number):
                return outcome
            if number < max_iterations:
                return await repeat(context, outcome, number + 1)
            if on_limit == "last":
                return outcome
            raise LoopLimit(
                f"the condition did not hold after {number} iterations",
                node=context.node,
                hint="raise the limit, or take the last value (on_limit: last)",
            )

        bindings = {names["value"]: value, names["iteration"]: number}
        scope = iteration(context.scope, number)
        return await grow_one(context, scope, body, bindings, then)

    return work
