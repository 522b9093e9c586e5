"""A workflow for drawing: nodes and lines, with the bodies of nodes as groups inside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from weft.workflow.document import Block, Body, Document, Step
from weft.workflow.document.leaves import JoinNode, ToolNode
from weft.workflow.document.nodes import BranchNode
from weft.workflow.document.walk import bodies
from weft.workflow.uses import inner_names, names_of

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
    cases of a branch, `alternatives` the tools that may be called instead of its own.
    """

    id: str
    label: str
    kind: str
    inside: GraphView | None = None
    groups: tuple[tuple[str, GraphView], ...] = ()
    alternatives: tuple[str, ...] = ()


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
    edges = (
        ViewEdge(prefix + source, prefix + target, style)
        for name, step in steps.items()
        for source, target, style in _edges(name, step, list(steps))
    )
    return GraphView(nodes, tuple(edges))


def _node(path: str, name: str, step: Step) -> ViewNode:
    if isinstance(step, BranchNode):
        groups = tuple((case, _body(body, f"{path}/{case}/")) for case, body in step.cases.items())
        return ViewNode(path, name, step.kind, None, groups)
    if isinstance(step, ToolNode):
        others = tuple(other.tool for other in step.alternatives)
        return ViewNode(path, name, step.kind, alternatives=others)
    inner = bodies(step)
    return ViewNode(path, name, step.kind, _body(inner[0].body, f"{path}/") if inner else None)


def _body(body: Body, prefix: str) -> GraphView:
    if isinstance(body, Block):
        return _level(body.nodes, prefix)
    return GraphView((_node(f"{prefix}{body.kind}", body.kind, body),))


def _edges(name: str, step: Step, beside: list[str]) -> Iterator[tuple[str, str, LineStyle]]:
    data = names_of(step) | inner_names(step) | set(step.join if isinstance(step, JoinNode) else ())
    waits = frozenset(step.after) - data
    yield from ((other, name, "data") for other in beside if other in data)
    yield from ((other, name, "after") for other in beside if other in waits)
    if step.fallback is not None:
        yield name, step.fallback, "fallback"
    if step.degrade is not None:
        yield name, step.degrade, "degrade"
