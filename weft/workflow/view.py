"""A workflow for drawing: nodes and lines, with the bodies of nodes as groups inside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from weft.workflow.document import Block, Body, Document, Step
from weft.workflow.document.leaves import JoinNode
from weft.workflow.document.nodes import BranchNode
from weft.workflow.document.walk import bodies
from weft.workflow.uses import uses, uses_of

LineStyle = Literal["data", "after", "fallback", "degrade"]


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """A line between two nodes of one level; what a body needs, its node needs."""

    source: str
    target: str
    style: LineStyle = "data"


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node. `id` is its path (`notes/draft`), `inside` the body of a map or loop, `groups` the
    cases of a branch.
    """

    id: str
    label: str
    kind: str
    inside: GraphView | None = None
    groups: tuple[tuple[str, GraphView], ...] = ()


@dataclass(frozen=True, slots=True)
class GraphView:
    """The nodes of one level, in declared order, and the lines between them."""

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...] = ()


def graph_view(document: Document) -> GraphView:
    """The whole workflow. Bodies that are a single node without a body are not drawn apart."""
    return _level(document.nodes, "")


def _level(steps: Mapping[str, Step], prefix: str) -> GraphView:
    nodes = tuple(_node(prefix + name, name, step) for name, step in steps.items())
    edges = dict.fromkeys(
        ViewEdge(prefix + edge.source, prefix + edge.target, edge.style)
        for name, step in steps.items()
        for edge in _edges(name, step)
        if edge.source in steps and edge.target in steps
    )
    return GraphView(nodes, tuple(edges))


def _node(path: str, name: str, step: Step) -> ViewNode:
    if isinstance(step, BranchNode):
        groups = tuple((case, _body(body, f"{path}/{case}/")) for case, body in step.cases.items())
        return ViewNode(path, name, step.kind, None, groups)
    inner = bodies(step)
    return ViewNode(path, name, step.kind, _body(inner[0].body, f"{path}/") if inner else None)


def _body(body: Body, prefix: str) -> GraphView:
    if isinstance(body, Block):
        return _level(body.nodes, prefix)
    return GraphView((_node(f"{prefix}{body.kind}", body.kind, body),))


def _edges(name: str, step: Step) -> Iterator[ViewEdge]:
    data = list(dict.fromkeys(_needs(step)))
    yield from (ViewEdge(source, name) for source in data)
    yield from (ViewEdge(source, name, "after") for source in step.after if source not in data)
    if step.fallback is not None:
        yield ViewEdge(name, step.fallback, "fallback")
    if step.degrade is not None:
        yield ViewEdge(name, step.degrade, "degrade")


def _needs(step: Step) -> Iterator[str]:
    """The names that a node uses, in its bodies too; some of them may be names of those bodies."""
    for use in uses(step):
        yield from sorted(use.names)
    if isinstance(step, JoinNode):
        yield from step.join
    for inside in bodies(step):
        own = set(inside.bound)
        if isinstance(inside.body, Block):
            own.update(inside.body.nodes)
            found = [
                n for inner in inside.body.nodes.values() for n in (*_needs(inner), *inner.after)
            ]
            found += [n for use in uses_of(inside.body.result) for n in sorted(use.names)]
        else:
            found = list(_needs(inside.body))
        yield from (name for name in found if name not in own)
