"""One instance of a body per item of a list that is only known when the node starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.errors import TypeMismatch
from weft.core.ids import NodeId, item
from weft.engine.kinds.body import Body, instances
from weft.engine.kinds.subgraph import subgraph
from weft.engine.node import ALL, Edge, Grow, Inputs, Join, Node, NodeContext, Streamed, Work


def map_over(
    over: str,
    body: Body,
    *,
    join: Join = ALL,
    width: int | None = None,
    bound: Mapping[str, str] | None = None,
) -> Work:
    """A work that runs `body` for every item of the list `inputs[over]`, at most `width` at once.

    The body gets the bindings "item" and "index"; `bound` renames them. The value is the list of
    results in the order of the items, whatever order they finish in; `join` decides how many are
    needed. When the list is itself a running map on a streaming edge, each item starts as soon as
    its own source is done.

    Raises, in the node: `TypeMismatch` when the input is not a list.
    """
    names = {"item": "item", "index": "index", **(bound or {})}

    async def work(context: NodeContext, inputs: Inputs) -> Grow:
        scope = context.scope

        def instance(index: int, value: Any) -> Node:
            bindings = {names["item"]: value, names["index"]: index}
            return _item_node(body, item(scope, index), bindings)

        nodes = await instances(context, _items(inputs[over], context.node), instance)
        results = tuple([node.id for node in nodes])
        return Grow(nodes, results, join=join, width=width, items=True)

    return work


def _item_node(body: Body, node: NodeId, bindings: Mapping[str, Any]) -> Node:
    """One node for the whole item, so that it is counted, held back and cancelled as one."""
    fragment = body(node, bindings)
    if len(fragment.nodes) == 1 and fragment.nodes[0].id == node:
        return fragment.nodes[0]
    edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
    given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
    return Node(node, subgraph(body), edges, given, kind="item")


def _items(value: object, node: NodeId) -> Sequence[Any]:
    if isinstance(value, Streamed):
        return [Edge(source) for source in value.nodes]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return value if isinstance(value, list | tuple) else list(value)
    raise TypeMismatch(
        f"a map needs a list, not {type(value).__name__}",
        node=node,
        hint="give it a list, or wrap the value in one",
    )
