"""Templates of nodes: one instance per map item, loop iteration, branch or call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from weft.core.ids import NodeId, inside
from weft.engine.graph.node import (
    AskHuman,
    Edge,
    Expand,
    Inputs,
    Node,
    NodeContext,
    NodeFn,
    Partial,
    Skip,
    Then,
)
from weft.engine.graph.slices import slices

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fragment:
    """One instance of a body. `result`, one of `nodes` or an outer node, carries its value.

    `exits`, of a loop's body: those of `nodes` that may end the loop.
    """

    nodes: tuple[Node, ...]
    result: NodeId
    exits: tuple[NodeId, ...] = ()


Body = Callable[[NodeId, Mapping[str, Any]], Fragment]
"""(scope, bindings) -> nodes whose ids lie inside `scope`.

A single node may have the id `scope` itself, except in a sub-workflow: there it is the expanding
node. A binding is a plain value, or an `Edge` to a value that is still being computed; the nodes
that use it must take that edge.
"""


async def instances(
    context: NodeContext, items: Sequence[T], make: Callable[[int, T], Node]
) -> tuple[Node, ...]:
    """The nodes that `make` builds from each item and its index; yields to the run between slices.

    Raises: `NodeLimit` when the run would have too many nodes.
    """
    nodes: list[Node] = []
    for part in slices(items):
        await context.make_room(len(part), len(items) - len(nodes))
        start = len(nodes)
        nodes += [make(start + index, item) for index, item in enumerate(part)]
    return tuple(nodes)


async def grow_one(
    context: NodeContext,
    scope: NodeId,
    body: Body,
    bindings: Mapping[str, Any],
    then: Then | None = None,
) -> Expand:
    """Append an instance of `body` and continue with its value, through `then` if there is one.

    A result that was left out on purpose leaves the expanding node out, or gives `then` no value.

    Raises: `NodeLimit` when the run would have too many nodes.
    """
    await context.make_room(1)
    fragment = body(scope, bindings)
    nodes, result = fragment.nodes, fragment.result
    if len(nodes) > 1:
        await context.make_room(len(nodes) - 1, len(nodes))
    if all(node.id != result for node in nodes):
        carrier = inside(scope, "outer-result")
        nodes = (*nodes, Node(carrier, _carry, (Edge(result, "value"),), kind="value"))
        result = carrier
    return Expand(nodes, (*fragment.exits, result), then or _only)


async def _carry(_: NodeContext, inputs: Inputs) -> Any:
    return inputs["value"]


async def _only(_: NodeContext, values: list[Any]) -> Any:
    return values[0] if values else Skip("its result was left out")


def subgraph(
    body: Body, bindings: Callable[[Inputs], Mapping[str, Any]] = lambda inputs: inputs
) -> NodeFn:
    """A node function that runs `body` once, with `bindings(inputs)`, and returns its value."""

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        return await grow_one(context, context.scope, body, bindings(inputs))

    return work


def map_result(result: Any, convert: Callable[[Any], Any]) -> Any:
    """Apply `convert` to a node's value, also where the node first expands or asks a person."""
    if isinstance(result, (Expand, AskHuman)):
        return replace(result, then=_then(result.then, convert))
    if isinstance(result, Partial):
        return replace(result, value=convert(result.value))
    return result if isinstance(result, Skip) else convert(result)


def _then(then: Then | None, convert: Callable[[Any], Any]) -> Then:
    async def work(context: NodeContext, value: Any) -> Any:
        return map_result(value if then is None else await then(context, value), convert)

    return work
