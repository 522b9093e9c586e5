"""What is wrong with a set of nodes, found before any of them runs. Knows nothing of their work."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError as Cycle
from graphlib import TopologicalSorter
from typing import get_args

from weft.core.errors import CycleError, DuplicateName, JoinError, UnknownReference
from weft.core.events import JoinMode
from weft.core.ids import NodeId, parent_of
from weft.engine.node import Grow, Join, Node
from weft.engine.slices import finish, slices

_MODES = get_args(JoinMode)


def check(nodes: Sequence[Node], known: Collection[NodeId] = ()) -> list[NodeId]:
    """Check `nodes`, which may refer to each other and to `known`; return a topological order.

    Raises: `DuplicateName`, `UnknownReference`, `JoinError`, `CycleError`, naming node and remedy.
    """
    return finish(checking(nodes, known))


def checking(
    nodes: Sequence[Node], known: Collection[NodeId] = ()
) -> Generator[None, None, list[NodeId]]:
    """Like `check`, with a pause after each slice of the nodes."""
    batch: dict[NodeId, Node] = {}
    for part in slices(nodes):
        for node in part:
            if node.id in batch or node.id in known:
                raise DuplicateName(
                    f"two nodes are called {node.id!r}", node=node.id, hint="rename one of them"
                )
            batch[node.id] = node
        if len(part) < len(nodes):
            yield
    inner = False
    for part in slices(nodes):
        for node in part:
            for each in (node, *_stand_ins(node)):
                _check_edges(each, batch, known)
                check_join(each.join, len({edge.source for edge in each.edges}), each.id)
                inner = inner or any(edge.source in batch for edge in each.edges)
        if len(part) < len(nodes):
            yield
    return _order(batch) if inner else list(batch)


def check_growth(grow: Grow, node: NodeId) -> None:
    """Raise `BuildError` when the children that `node` asks for can never be joined."""
    if grow.results or grow.join.mode != "best_effort":
        check_join(grow.join, len(grow.results), node)
    if grow.width is not None and grow.width < 1:
        raise JoinError(
            f"at most {grow.width} children at once means none",
            node=node,
            hint="the width must be 1 or more",
        )
    appended = {child.id for child in grow.nodes}
    for result in grow.results:
        if result not in appended:
            raise UnknownReference(
                f"{result!r} is to be joined, but is not among the appended nodes, or named twice",
                node=node,
                hint="name each node to join once",
            )
        appended.remove(result)


def check_join(join: Join, branches: int, node: NodeId) -> None:
    """Raise `JoinError` when `join` over so many branches can never be satisfied."""
    if join.mode == "all":
        return
    if join.mode not in _MODES:
        raise JoinError(
            f"there is no join {join.mode!r}", node=node, hint=f"use one of {', '.join(_MODES)}"
        )
    if join.mode == "quorum" and not 1 <= join.k <= max(branches, 1):
        raise JoinError(
            f"a quorum of {join.k} of {branches} branches can never be met",
            node=node,
            hint=f"k must be from 1 to {branches}",
        )
    if branches == 0:
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
        node.id: [
            edge.source
            for part in (node, *_stand_ins(node))
            for edge in part.edges
            if edge.source in batch
        ]
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


def _stand_ins(node: Node) -> Iterator[Node]:
    """The nodes that may run in the place of `node`, and in theirs."""
    for stand_in in (node.policy.fallback, node.policy.degrade):
        if stand_in is not None:
            yield stand_in
            yield from _stand_ins(stand_in)
