"""What is wrong with a set of nodes, found before any of them runs. Knows nothing of their work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError as Cycle
from graphlib import TopologicalSorter

from weft.core.errors import CycleError, DuplicateName, JoinError, UnknownReference
from weft.core.ids import NodeId, parent_of
from weft.engine.node import Join, Node


def check(nodes: Sequence[Node], known: Collection[NodeId] = ()) -> list[NodeId]:
    """Check `nodes`, which may refer to each other and to `known`; return a topological order.

    Raises: `DuplicateName`, `UnknownReference`, `JoinError`, `CycleError`, naming node and remedy.
    """
    batch: dict[NodeId, Node] = {}
    for node in nodes:
        if node.id in batch or node.id in known:
            raise DuplicateName(
                f"two nodes are called {node.id!r}", node=node.id, hint="rename one of them"
            )
        batch[node.id] = node
    for node in nodes:
        _check_edges(node, batch, known)
        check_join(node.join, len(node.edges), node.id)
    return _order(batch)


def check_join(join: Join, branches: int, node: NodeId) -> None:
    """Raise `JoinError` when `join` over so many branches can never be satisfied."""
    if join.mode == "quorum" and not 1 <= join.k <= max(branches, 1):
        raise JoinError(
            f"a quorum of {join.k} of {branches} branches can never be met",
            node=node,
            hint=f"k must be from 1 to {branches}",
        )
    if join.mode != "all" and branches == 0:
        raise JoinError(
            f"a join {join.mode!r} without branches owns nothing to join",
            node=node,
            hint="name the nodes it joins",
        )


def _check_edges(node: Node, batch: Mapping[NodeId, Node], known: Collection[NodeId]) -> None:
    names: set[str] = set()
    for edge in node.edges:
        if edge.name and (edge.name in names or edge.name in node.given):
            raise DuplicateName(
                f"two inputs write {edge.name!r}", node=node.id, hint="give each its own name"
            )
        names.add(edge.name)
        if edge.stream and node.join.mode != "all":
            raise JoinError(
                f"a join {node.join.mode!r} cannot take the items of {edge.source!r} one by one",
                node=node.id,
                hint="join the whole list instead",
            )
        if edge.source not in batch and edge.source not in known:
            raise _unknown(node, edge.source, batch)


def _unknown(node: Node, source: NodeId, batch: Mapping[NodeId, Node]) -> Exception:
    scope = parent_of(source)
    if scope is not None and scope in batch:
        return JoinError(
            f"{source!r} lives inside {scope!r}, which owns its branches",
            node=node.id,
            hint=f"take the joined result of {scope!r} instead",
        )
    near = get_close_matches(source, batch, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "add that node, or remove the reference"
    return UnknownReference(f"there is no node {source!r}", node=node.id, hint=hint)


def _order(batch: Mapping[NodeId, Node]) -> list[NodeId]:
    sources = {
        node.id: [edge.source for edge in node.edges if edge.source in batch]
        for node in batch.values()
    }
    try:
        return list(TopologicalSorter(sources).static_order())
    except Cycle as cycle:
        path = [str(name) for name in reversed(cycle.args[1])]
        raise CycleError(
            f"nodes wait for each other: {' -> '.join(path)}",
            node=path[0],
            hint="remove one of these references, or use a loop node",
        ) from None
