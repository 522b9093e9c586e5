"""A skeleton and the fields of its nodes as a document. Writes no expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft.workflow.author.intention import Intention, IntentionField, declared_type
from weft.workflow.author.skeleton import SkeletonNode, WorkflowSkeleton

MODEL: Final = "model"
"""The name of the model in a written workflow."""
UNWRITTEN: Final = "{{ }}"
"""Stands for an expression that no usable answer has: `weft check` refuses it."""
_MOST_TURNS: Final = 10


def laid_out(
    base: Mapping[str, Any],
    intention: Intention,
    skeleton: WorkflowSkeleton,
    fields: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The document in plain data. `base`: name, description, models and tools.

    `fields`: what is written of each node, by id; without them it has placeholders.
    """
    used = {node.tool.partition(".")[0] for node in skeleton.nodes if node.tool}
    speaks = any(node.kind == "model" for node in skeleton.nodes)
    names = {key: base[key] for key in ("name", "description") if base.get(key)}
    return {
        **names,
        "inputs": {field.name: _input(field) for field in intention.input},
        "models": {MODEL: base["model"]} if speaks else {},
        "tools": {name: use for name, use in base["tools"].items() if name in used},
        "nodes": _level(skeleton, "", fields),
        "outputs": {name: f"{{{{ {node} }}}}" for name, node in skeleton.outputs.items()},
    }


def address_of(skeleton: WorkflowSkeleton, node: SkeletonNode) -> str:
    """The address of a node in the document that is laid out."""
    if not node.inside:
        return node.id
    outer = address_of(skeleton, skeleton.node(node.container))
    return f"{outer}{node.inside.removeprefix(node.container)}/{node.id}"


def skeleton_edges(skeleton: WorkflowSkeleton) -> list[tuple[str, str]]:
    """The edges that the document must have: a name, and the address of the node that needs it."""
    return [(name, address_of(skeleton, node)) for node in skeleton.nodes for name in node.needs]


def _input(field: IntentionField) -> Any:
    kind = declared_type(field.type)
    if not field.description:
        return kind
    typed = {"type": "array", "items": {"type": kind[0]}} if isinstance(kind, list) else {}
    return {**(typed or {"type": kind}), "description": field.description}


def _level(
    skeleton: WorkflowSkeleton, place: str, fields: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    nodes = skeleton.inside(place)
    return {node.id: _node(skeleton, node, fields) for node in nodes}


def _node(
    skeleton: WorkflowSkeleton,
    node: SkeletonNode,
    fields: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    written = fields.get(node.id)
    given = dict(written) if written is not None else {}
    made = dict(_made(skeleton, node, given, fields))
    made |= {key: given[key] for key in ("when", "after") if key in given}
    if node.does:
        made["description"] = node.does
    return made


def _made(
    skeleton: WorkflowSkeleton,
    node: SkeletonNode,
    given: Mapping[str, Any],
    fields: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, Any]]:
    """The keys of a node, in the order of a file."""
    match node.kind:
        case "tool":
            yield "tool", node.tool
            if given.get("with"):
                yield "with", given["with"]
        case "model":
            yield "model", MODEL
            yield "prompt", given.get("prompt", UNWRITTEN)
            if node.answer != "string":
                yield "schema", declared_type(node.answer)
        case "map" | "branch" | "loop":
            yield from _container(skeleton, node, given, fields)
        case "ask":
            yield "ask", given.get("ask", UNWRITTEN)
            if "schema" in given:
                yield "schema", given["schema"]
        case _:
            yield "value", given.get("value", UNWRITTEN)


def _container(
    skeleton: WorkflowSkeleton,
    node: SkeletonNode,
    given: Mapping[str, Any],
    fields: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, Any]]:
    match node.kind:
        case "map":
            yield "map", given.get("map", UNWRITTEN)
            yield "as", node.item
            yield "do", _body(skeleton, node.id, fields)
        case "branch":
            yield "branch", given.get("branch", UNWRITTEN)
            bodies = zip(node.cases, node.bodies(), strict=True)
            yield "cases", {case: _body(skeleton, place, fields) for case, place in bodies}
        case _:
            yield "loop", _body(skeleton, node.id, fields)
            yield "as", node.item
            if "start" in given:
                yield "start", given["start"]
            yield "until", given.get("until", UNWRITTEN)
            yield "max", given.get("max", _MOST_TURNS)


def _body(
    skeleton: WorkflowSkeleton, place: str, fields: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The nodes of a body; its result is the last of them."""
    nodes = _level(skeleton, place, fields)
    return {"nodes": nodes, "result": f"{{{{ {list(nodes)[-1]} }}}}"}
