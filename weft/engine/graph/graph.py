"""A graph: immutable and checked before any node runs; and the options of its runs."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError as Cycle
from graphlib import TopologicalSorter
from typing import Final, get_args

from weft.core.errors import CycleError, DuplicateName, JoinError, UnknownReference
from weft.core.events import GraphGrew, JoinMode, NodeInfo
from weft.core.ids import NodeId, parent_of
from weft.core.suggestion import closest
from weft.core.values import constructor
from weft.engine.graph.node import BudgetLimit, Expand, Join, Node
from weft.engine.graph.slices import finish, slices

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
            for each in (node, *_substitutes(node)):
                _check_edges(each, batch, known)
                check_join(each.join, len({edge.source for edge in each.edges}), each.id)
                inner = inner or any(edge.source in batch for edge in each.edges)
        if len(part) < len(nodes):
            yield
    return _order(batch) if inner else list(batch)


def check_growth(grow: Expand, node: NodeId) -> None:
    """Raise `BuildError` when the children that `node` appends can never be joined."""
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
    """Raise `JoinError` when `join` over that many branches can never be satisfied."""
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
    near = closest(source, batch)
    hint = f"did you mean {near!r}?" if near else "add that node, or remove the reference"
    return UnknownReference(f"there is no node {source!r}", node=node.id, hint=hint)


def _order(batch: Mapping[NodeId, Node]) -> list[NodeId]:
    sources = {
        node.id: [
            edge.source
            for part in (node, *_substitutes(node))
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


def _substitutes(node: Node) -> Iterator[Node]:
    """The nodes that may run in place of `node`, and their own substitutes."""
    for substitute in (node.policy.fallback, node.policy.degrade):
        if substitute is not None:
            yield substitute
            yield from _substitutes(substitute)


_node_info = constructor(NodeInfo)


class Graph:
    """The nodes of a program, in declared order.

    `keep` names nodes whose values are results in themselves: no join cancels them. `ranks` gives
    each node's remaining critical path: its weight plus the longest path to a sink.

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
        """The same graph with the `nodes` given by their index in `self.nodes`.

        They may differ only in their node function and constants: nothing is checked.
        """
        if not nodes:
            return self
        replaced = list(self.nodes)
        for index, node in nodes.items():
            replaced[index] = node
        other = object.__new__(Graph)
        other.name, other.keep, other.order = self.name, self.keep, self.order
        other.infos, other.ranks, other.nodes = self.infos, self.ranks, tuple(replaced)
        return other


def ranks(nodes: Sequence[Node], order: Sequence[NodeId], base: float = 0.0) -> dict[NodeId, float]:
    """Each node's weight plus the heaviest path from it to a sink, plus `base`.

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
    """The description of `node` in events."""
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
    parent: NodeId, nodes: Sequence[Node], grow: Expand | None, now_s: float, start: int = 0
) -> GraphGrew:
    """The event for nodes that `parent` appended, by `grow` or while its node function runs.

    A large `grow` is announced in parts: `nodes` are those from number `start` on.
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


MAX_NODES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`max_concurrency`: node functions that run at once (None: no limit); `limits`: per resource.

    `deadline_s`: the run ends then, with what it has. `limit`: the run's budget. `seed`: seeds the
    retry jitter. `grace_s`: how long the end of the run waits for cancelled code. `max_nodes`: the
    most nodes of the run, all expansions included (None: no limit).
    """

    max_concurrency: int | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    deadline_s: float | None = None
    limit: BudgetLimit | None = None
    seed: int = 0
    grace_s: float = 1.0
    max_nodes: int | None = MAX_NODES

    @property
    def slots(self) -> dict[str, int]:
        """The slots of each resource class, and under "" those of all node functions together."""
        general = {} if self.max_concurrency is None else {"": self.max_concurrency}
        return {**self.limits, **general}
