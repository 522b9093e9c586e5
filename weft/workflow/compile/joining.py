"""Joins: of several nodes, and of the items of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.ids import inside
from weft.engine.node import MISSING, Grow, Inputs, Join, Node, NodeContext, Work
from weft.workflow.compile.names import Names
from weft.workflow.document.leaves import JoinNode
from weft.workflow.document.nodes import MapNode
from weft.workflow.expressions import template, value_template

_EARLY = ("any", "quorum", "first_valid")


def join_of(step: JoinNode | MapNode, names: Names) -> Join:
    """The engine's join."""
    valid = None
    if step.valid is not None:
        test = template(step.valid)

        def valid(value: Any) -> bool:
            return bool(test.render({**names.inputs, "value": value}))

    stands_in = "otherwise" in step.model_fields_set
    otherwise = value_template(step.otherwise).render(names.inputs) if stands_in else MISSING
    return Join(
        step.mode,
        step.k or 1,
        valid,
        otherwise,
        cancel_rest=names.settled and step.mode in _EARLY,
        counts="items" if isinstance(step, MapNode) else "branches",
    )


def join(step: JoinNode) -> Work:
    """The values of the branches that won, in the order written; of a single one, the value."""

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return _value(step, [inputs[name] for name in step.join if name in inputs])

    return work


def late_join(step: JoinNode, names: Names) -> Work:
    """A join that has more to wait for than its branches: it begins to join once that is there."""

    async def work(context: NodeContext, _: Inputs) -> Grow:
        place = inside(context.scope, "join")
        edges = names.edges(step.join)
        node = Node(place, join(step), edges, join=join_of(step, names), kind="join")
        return Grow((node,), (place,), then=_only)

    return work


async def _only(_: NodeContext, values: Sequence[Any]) -> Any:
    return values[0]


def _value(step: JoinNode, values: list[Any]) -> Any:
    return values[0] if step.mode in ("any", "first_valid") else values
