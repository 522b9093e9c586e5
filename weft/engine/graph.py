"""A checked set of nodes, ready to run. Immutable; knows nothing of what the nodes do."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence

from weft.core.errors import UnknownReference
from weft.core.events import GraphGrew, NodeInfo
from weft.core.frozen import constructor
from weft.core.ids import NodeId
from weft.engine.checks import check
from weft.engine.node import Grow, Node
from weft.engine.slices import finish, slices

_node_info = constructor(NodeInfo)


class Graph:
    """The nodes of a program, in declared order.

    `keep` names nodes whose values are wanted for themselves, so that no join cancels them.
    `ranks` gives each node's remaining critical path: its weight plus the longest way to a sink.

    Raises: `DuplicateName`, `UnknownReference`, `JoinError`, `CycleError`.
    """

    __slots__ = ("infos", "keep", "name", "nodes", "order", "ranks")

    def __init__(self, name: str, nodes: Sequence[Node], keep: Iterable[NodeId] = ()) -> None:
        self.name = name
        self.nodes = tuple(nodes)
        self.keep = frozenset(keep)
        self.order = check(self.nodes)
        for kept in self.keep.difference(self.order):
            raise UnknownReference(
                f"there is no node {kept!r} to keep", hint="keep nodes of this graph"
            )
        self.infos = tuple(info(node) for node in self.nodes)
        self.ranks = ranks(self.nodes, self.order)

    def rebound(self, nodes: Mapping[int, Node]) -> Graph:
        """The same graph with other `nodes` at these places of `self.nodes`.

        They differ from those in their work and in what they are given only: nothing is checked.
        """
        if not nodes:
            return self
        made = list(self.nodes)
        for place, node in nodes.items():
            made[place] = node
        other = object.__new__(Graph)
        other.name, other.keep, other.order = self.name, self.keep, self.order
        other.infos, other.ranks, other.nodes = self.infos, self.ranks, tuple(made)
        return other


def ranks(nodes: Sequence[Node], order: Sequence[NodeId], base: float = 0.0) -> dict[NodeId, float]:
    """Each node's weight plus the heaviest way from it to a sink, plus `base`.

    `order` is a topological order of `nodes`. Edges from outside are ignored.
    """
    return finish(ranking(nodes, order, base))


def ranking(
    nodes: Sequence[Node], order: Sequence[NodeId], base: float
) -> Generator[None, None, dict[NodeId, float]]:
    """Like `ranks`, with a pause after each slice of the nodes."""
    by_id: Mapping[NodeId, Node] = {node.id: node for node in nodes}
    longest = dict.fromkeys(order, base)
    for part in slices(order[::-1]):
        for node_id in part:
            node = by_id[node_id]
            rank = longest[node_id] = longest[node_id] + node.policy.weight
            for edge in node.edges:
                if longest.get(edge.source, rank) < rank:
                    longest[edge.source] = rank
        if len(part) < len(order):
            yield
    return longest


def info(node: Node, parent: NodeId | None = None) -> NodeInfo:
    """What readers of events need to know of `node`."""
    edges, policy, join = node.edges, node.policy, node.join
    return _node_info(
        node.id,
        node.kind,
        tuple([edge.source for edge in edges]),
        policy.resource,
        parent,
        tuple([edge.source for edge in edges if edge.stream]),
        join.mode,
        join.k,
        join.cancel_rest,
        1 if policy.retry is None else policy.retry.attempts,
        policy.weight,
        policy.spends,
        policy.on_failure == "skip",
    )


def grew(
    parent: NodeId, nodes: Sequence[Node], grow: Grow | None, now_s: float, start: int = 0
) -> GraphGrew:
    """The event of nodes that `parent` appended: by `grow`, or while its work goes on.

    The nodes of a large `grow` are told in parts: `nodes` are those from number `start` on.
    """
    infos = tuple([info(node, parent) for node in nodes])
    if grow is None:
        return GraphGrew(parent, infos, now_s)
    join = grow.join
    items = grow.items and grow.then is None
    end = start + len(nodes)
    more = end < len(grow.nodes)
    results = grow.results[start : end if more else None]
    return GraphGrew(parent, infos, now_s, results, join.mode, join.k, grow.width, items, more)
