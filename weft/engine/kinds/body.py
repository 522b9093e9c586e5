"""A template of nodes that is instantiated once per map item, loop iteration, branch or call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.ids import NodeId, inside
from weft.engine.node import Edge, Grow, Inputs, Node, NodeContext, Skip, Then


@dataclass(frozen=True, slots=True)
class Fragment:
    """One instance of a body. `result`, one of `nodes` or a node outside, carries its value."""

    nodes: tuple[Node, ...]
    result: NodeId


Body = Callable[[NodeId, Mapping[str, Any]], Fragment]
"""(scope, bindings) -> nodes whose ids lie inside `scope`.

A single node may be `scope` itself, but for a sub-workflow, whose scope is the growing node.

A binding is a plain value, or an `Edge` that the nodes that use it must take: the value is then
still being computed.
"""


def grow_one(scope: NodeId, fragment: Fragment, then: Then | None = None) -> Grow:
    """Append `fragment` and go on with its value (as it is, without `then`).

    A result that was left out on purpose leaves the growing node out, or gives `then` no value.
    """
    nodes, result = fragment.nodes, fragment.result
    if all(node.id != result for node in nodes):
        carrier = inside(scope, "outer-result")
        nodes = (*nodes, Node(carrier, _carry, (Edge(result, "value"),), kind="value"))
        result = carrier
    return Grow(nodes, (result,), then or _only)


async def _carry(_: NodeContext, inputs: Inputs) -> Any:
    return inputs["value"]


async def _only(_: NodeContext, values: list[Any]) -> Any:
    return values[0] if values else Skip("its result was left out")
