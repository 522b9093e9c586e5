"""A workflow for drawing: nodes and edges, bodies as groups; also as Mermaid text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Literal

from weft.workflow.document import BaseNode, Block, Body, NodeSpec, WorkflowDocument
from weft.workflow.document.breaks import breaks_before
from weft.workflow.document.spec.document import bodies
from weft.workflow.document.spec.nodes import BranchNode, JoinNode, ToolNode, WorkflowNode
from weft.workflow.document.state_order import Fields, StateOrder
from weft.workflow.document.templates import inner_names, names_of

LineStyle = Literal["data", "after", "fallback", "degrade"]


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """An edge between two nodes of one level; what a body needs, its node needs."""

    source: str
    target: str
    style: LineStyle = "data"


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node. `id` is its path (`notes/draft`), `inside` the body of a map or loop, `groups` the
    cases of a branch, `alternatives` the tools that may be called instead of its own, `max_depth`
    how deep a workflow may run inside itself.
    """

    id: str
    label: str
    kind: str
    inside: GraphView | None = None
    groups: tuple[tuple[str, GraphView], ...] = ()
    alternatives: tuple[str, ...] = ()
    max_depth: int | None = None


@dataclass(frozen=True, slots=True)
class GraphView:
    """The nodes of one level, in declared order, and the edges between them."""

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...] = ()


def graph_view(document: WorkflowDocument) -> GraphView:
    """The whole workflow. Bodies that are a single node without a body are not drawn separately."""
    return _level(document.nodes, "", document.state)


def _level(steps: Mapping[str, NodeSpec], prefix: str, fields: Fields) -> GraphView:
    nodes = tuple(_node(prefix + name, name, step, fields) for name, step in steps.items())
    breaks = breaks_before(steps)
    order = StateOrder.of(steps, fields) if fields else None
    edges = (
        ViewEdge(prefix + source, prefix + target, style)
        for name, step in steps.items()
        for source, target, style in _edges(
            name, step, list(steps), breaks.get(name), order.waits(name) if order else ()
        )
    )
    return GraphView(nodes, tuple(edges))


def _node(path: str, name: str, step: BaseNode, fields: Fields) -> ViewNode:
    if isinstance(step, BranchNode):
        groups = tuple(
            (case, _body(b, f"{path}/{case}/", fields)) for case, b in step.cases.items()
        )
        return ViewNode(path, name, step.kind, None, groups)
    if isinstance(step, ToolNode):
        others = tuple(other.tool for other in step.alternatives)
        return ViewNode(path, name, step.kind, alternatives=others)
    if isinstance(step, WorkflowNode):
        return ViewNode(path, name, step.kind, max_depth=step.max_depth)
    inner = bodies(step)
    body = _body(inner[0].body, f"{path}/", fields) if inner else None
    return ViewNode(path, name, step.kind, body)


def _body(body: Body, prefix: str, fields: Fields) -> GraphView:
    if isinstance(body, Block):
        return _level(body.nodes, prefix, fields)
    return GraphView((_node(f"{prefix}{body.kind}", body.kind, body, fields),))


def _edges(
    name: str,
    step: BaseNode,
    siblings: list[str],
    last_break: str | None,
    writers: Collection[str],
) -> Iterator[tuple[str, str, LineStyle]]:
    data = names_of(step) | inner_names(step) | set(step.join if isinstance(step, JoinNode) else ())
    waits = frozenset((*step.after, last_break, *writers)) - data
    yield from ((other, name, "data") for other in siblings if other in data)
    yield from ((other, name, "after") for other in siblings if other in waits)
    if step.fallback is not None:
        yield name, step.fallback, "fallback"
    if step.degrade is not None:
        yield name, step.degrade, "degrade"


_LINES = {
    "data": "-->",
    "after": "-.->",
    "fallback": "-. fallback .->",
    "degrade": "-. degrade .->",
}
_SHAPES = {
    "tool": ("[", "]"),
    "call": ("[", "]"),
    "reduce": ("[/", "/]"),
    "model": ("(", ")"),
    "branch": ("{", "}"),
    "join": ("{{", "}}"),
    "break": ("([", "])"),
    "ask": ("[\\", "\\]"),
    "workflow": ("[[", "]]"),
}


def mermaid(view: GraphView) -> str:
    """The graph as a flowchart, one statement a line."""
    return "\n".join(["flowchart TD", *_Chart().level(view, "    ")]) + "\n"


class _Chart:
    """One flowchart, with a unique identifier for every path."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def level(self, view: GraphView, margin: str) -> Iterator[str]:
        for node in view.nodes:
            yield from self._node(node, margin)
        for edge in view.edges:
            yield f"{margin}{self._id(edge.source)} {_LINES[edge.style]} {self._id(edge.target)}"

    def _node(self, node: ViewNode, margin: str) -> Iterator[str]:
        if node.inside is None and not node.groups:
            left, right = _SHAPES.get(node.kind, ("[", "]"))
            yield f'{margin}{self._id(node.id)}{left}"{_label(node)}"{right}'
            return
        yield f'{margin}subgraph {self._id(node.id)}["{_text(node.label)} ({_text(node.kind)})"]'
        if node.inside is not None:
            yield from self.level(node.inside, margin + "    ")
        for case, group in node.groups:
            yield f'{margin}    subgraph {self._id(f"{node.id}/{case}")}["{_text(case)}"]'
            yield from self.level(group, margin + "        ")
            yield f"{margin}    end"
        yield f"{margin}end"

    def _id(self, path: str) -> str:
        if path not in self._ids:
            readable = "n_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in path)
            taken = set(self._ids.values())
            numbered = (f"{readable}_{number}" for number in count(2))
            self._ids[path] = next(
                name for name in chain([readable], numbered) if name not in taken
            )
        return self._ids[path]


def _label(node: ViewNode) -> str:
    kind = _text(node.kind)
    if node.alternatives:
        kind += f"<br/>or {', '.join(map(_text, node.alternatives))}"
    if node.max_depth is not None:
        kind += f"<br/>at most {node.max_depth} deep"
    return kind if node.label == node.kind else f"{_text(node.label)}<br/>{kind}"


def _text(text: str) -> str:
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    return "".join(c if c.isalnum() or c in " _-." else f"#{ord(c)};" for c in shown)
