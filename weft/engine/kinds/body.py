"""Templates of nodes, instantiated once per map item, loop iteration, branch or call."""

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
    """One instance of a body. `result`, one of `nodes` or a node outside, carries its value."""

    nodes: tuple[Node, ...]
    result: NodeId


Body = Callable[[NodeId, Mapping[str, Any]], Fragment]
"""(scope, bindings) -> nodes whose ids lie inside `scope`.

A single node may be `scope` itself, but for a sub-workflow, whose scope is the growing node.

A binding is a plain value, or an `Edge` that the nodes that use it must take: the value is then
still being computed.
"""


async def instances(
    context: NodeContext, items: Sequence[T], make: Callable[[int, T], Node]
) -> tuple[Node, ...]:
    """The nodes that `make` makes of each item and its index; between slices the run goes on.

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
    """Append an instance of `body` and go on with its value (as it is, without `then`).

    A result that was left out on purpose leaves the growing node out, or gives `then` no value.

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
    return Expand(nodes, (result,), then or _only)


async def _carry(_: NodeContext, inputs: Inputs) -> Any:
    return inputs["value"]


async def _only(_: NodeContext, values: list[Any]) -> Any:
    return values[0] if values else Skip("its result was left out")


def subgraph(
    body: Body, bindings: Callable[[Inputs], Mapping[str, Any]] = lambda inputs: inputs
) -> NodeFn:
    """A work that runs `body` once, with `bindings(inputs)`; the body's value is the value."""

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        return await grow_one(context, context.scope, body, bindings(inputs))

    return work


def map_result(result: Any, convert: Callable[[Any], Any]) -> Any:
    """`convert` of a work's value, also where the work grows nodes or asks before it has one."""
    if isinstance(result, (Expand, AskHuman)):
        return replace(result, then=_then(result.then, convert))
    if isinstance(result, Partial):
        return replace(result, value=convert(result.value))
    return result if isinstance(result, Skip) else convert(result)


def _then(then: Then | None, convert: Callable[[Any], Any]) -> Then:
    async def work(context: NodeContext, value: Any) -> Any:
        return map_result(value if then is None else await then(context, value), convert)

    return work
