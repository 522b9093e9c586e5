"""A map that grows: a sample of the items first, then more and more, while the results are good."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.events import Outcome
from weft.engine.graph.node import Expand, Inputs, Join, Node, NodeContext
from weft.engine.kinds.body import instances


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """What is known after a step: results in the order of the items, and counts of items."""

    value: list[Any]
    done: int
    failed: int
    total: int

    def names(self) -> dict[str, Any]:
        """The fields, by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Growth:
    """`first` items, then `factor` times as many in all, and so on; `seed` draws their order.

    `accept(inputs, step)` is called after each step but the last, and raises to end the map.
    """

    first: int
    factor: float
    seed: int
    accept: Callable[[Inputs, GrowthStep], None]

    def steps(self, total: int) -> list[list[int]]:
        """The indices of each step, ascending in it; all together are 0 to `total` - 1."""
        order = list(range(total))
        random.Random(self.seed).shuffle(order)  # noqa: S311 - not for secrets
        found, done, wanted = [], 0, self.first
        while done < total:
            found.append(sorted(order[done:wanted]))
            done, wanted = min(wanted, total), max(wanted + 1, math.ceil(wanted * self.factor))
        return found

    async def expand(
        self,
        context: NodeContext,
        inputs: Inputs,
        items: Sequence[Any],
        make: Callable[[int, Any], Node],
        join: Join,
        width: int | None,
    ) -> Expand:
        """The first step of a map over `items`, which leads to the next ones."""
        steps = self.steps(len(items))
        results: dict[int, Any] = {}
        failed = 0

        async def step(context: NodeContext, number: int) -> Expand:
            indices = steps[number] if steps else []
            nodes = await instances(context, indices, lambda _, index: make(index, items[index]))

            async def then(context: NodeContext, values: list[Any]) -> Any:
                nonlocal failed
                ends = [await context.outcome(node.id) for node in nodes]
                failed += sum(not end.ok and not _left_out(end) for end in ends)
                kept = [
                    index for index, end in zip(indices, ends, strict=True) if not _left_out(end)
                ]
                results.update(zip(kept, values, strict=True))
                found = [results[index] for index in sorted(results)]
                if number + 1 >= len(steps):
                    return found
                done = sum(map(len, steps[: number + 1]))
                self.accept(inputs, GrowthStep(found, done, failed, len(items)))
                return await step(context, number + 1)

            return Expand(nodes, tuple([node.id for node in nodes]), then, join, width)

        return await step(context, 0)


def _left_out(outcome: Outcome) -> bool:
    """Whether an item was left out on purpose: then it has no result."""
    return not outcome.ok and outcome.failure is None
