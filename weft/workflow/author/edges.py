"""The nodes and edges of a document: its skeleton, as far as names say it."""

from __future__ import annotations

from collections.abc import Iterator

from weft.workflow.author.intention import VALUE_TYPES
from weft.workflow.author.skeleton import KINDS, SkeletonNode, WorkflowSkeleton
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import value_template
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import bodies, node_address, walk
from weft.workflow.document.spec.nodes import (
    BaseNode,
    Block,
    BranchNode,
    JoinNode,
    LoopNode,
    MapNode,
    ModelNode,
    ToolNode,
)
from weft.workflow.document.templates import names_of


def document_edges(document: WorkflowDocument) -> set[tuple[str, str]]:
    """Each name that a node itself uses or waits for, with the node's address.

    The results of its bodies are uses of a node, its inner nodes are not.
    """
    found: set[tuple[str, str]] = set()
    for path, step in walk(document.nodes):
        address = node_address(path)
        found |= {(name, address) for name in _needs(step)}
    return found


def _needs(step: BaseNode) -> list[str]:
    joined = step.join if isinstance(step, JoinNode) else []
    own = {*names_of(step), *step.after, *joined}
    for inside in bodies(step):
        if isinstance(inside.body, Block):
            own |= value_template(inside.body.result).names
            own -= {*inside.body.nodes, *inside.bound}
    return sorted(own - _bound(step))


def _bound(step: BaseNode) -> set[str]:
    return {step.item, "iteration"} if isinstance(step, LoopNode) else set()


def skeleton_of(document: WorkflowDocument) -> WorkflowSkeleton | None:
    """The skeleton from which the document could be written; None where it has other nodes.

    A body of one node without a name, names that stand at several places, and kinds that no
    skeleton has are such.
    """
    nodes = [_node(path, step) for path, step in walk(document.nodes)]
    names = [node.id for node in nodes if node is not None]
    if len(names) < len(nodes) or len(set(names)) < len(names):
        return None
    outputs = {
        name: next(iter(value_template(value).names), "")
        for name, value in document.outputs.items()
    }
    return WorkflowSkeleton(tuple(node for node in nodes if node is not None), outputs)


def _node(path: KeyPath, step: BaseNode) -> SkeletonNode | None:
    if path[-2] != "nodes" or step.kind not in KINDS:
        return None
    return SkeletonNode(
        str(path[-1]),
        step.kind,
        _inside(path),
        tuple(_needs(step)),
        step.description or "",
        tool=step.tool if isinstance(step, ToolNode) else "",
        answer=_answer(step),
        item=step.item if isinstance(step, MapNode | LoopNode) else "",
        cases=tuple(step.cases) if isinstance(step, BranchNode) else (),
    )


def _inside(path: KeyPath) -> str:
    """The place of a node, as of `SkeletonNode.inside`."""
    around = list(_around(path[:-2]))
    return around[-1] if around else ""


def _around(path: KeyPath) -> Iterator[str]:
    for at in range(len(path) - 1):
        if path[at] == "nodes":
            case = path[at + 3] if path[at + 2 : at + 3] == ("cases",) else None
            yield str(path[at + 1]) if case is None else f"{path[at + 1]}/{case}"


def _answer(step: BaseNode) -> str:
    if not isinstance(step, ModelNode) or step.output_schema is None:
        return "string"
    kind, items = step.output_schema.get("type"), step.output_schema.get("items")
    if kind == "array" and isinstance(items, dict):
        kind = f"list of {items.get('type')}s"
    return str(kind) if kind in VALUE_TYPES else "object"
