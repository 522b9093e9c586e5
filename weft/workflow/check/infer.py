"""What type a template or a value with templates has, as a JSON Schema, as far as it shows.

Evaluates nothing. None means: anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from jinja2 import nodes

from weft.core.schema import at
from weft.core.values import JsonSchema
from weft.workflow.expressions import Template
from weft.workflow.expressions.tree import ValueTemplate

Look = Callable[[str], JsonSchema | None]
"""The schema of a name."""

STRING: JsonSchema = {"type": "string"}
INTEGER: JsonSchema = {"type": "integer"}
BOOLEAN: JsonSchema = {"type": "boolean"}
LIST: JsonSchema = {"type": "array"}
_MOST_PARTS = 2_000
_FILTERS: Mapping[str, JsonSchema] = {
    **dict.fromkeys(("length", "count", "wordcount", "int"), INTEGER),
    **dict.fromkeys(("upper", "lower", "title", "capitalize", "trim", "truncate"), STRING),
    **dict.fromkeys(("join", "replace", "indent", "string", "tojson", "wordwrap"), STRING),
    **dict.fromkeys(("list", "map", "select", "reject", "sort", "unique", "flatten"), LIST),
}


def infer(value: ValueTemplate, look: Look) -> JsonSchema | None:
    """The schema of a value with templates in it."""
    return _infer(value.tree, look)


def _infer(tree: Any, look: Look) -> JsonSchema | None:
    if isinstance(tree, Template):
        return _template(tree, look)
    if isinstance(tree, dict):
        properties = {key: _infer(item, look) for key, item in tree.items()}
        return {
            "type": "object",
            "properties": {key: _known(item) for key, item in properties.items()},
            "required": list(tree),
            "additionalProperties": False,
        }
    if isinstance(tree, list):
        items = [_known(_infer(item, look)) for item in tree]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", **({"prefixItems": items} if items else {}), **size}
    return {"const": tree}


def _known(schema: JsonSchema | None) -> JsonSchema:
    return schema if is_part(schema) else {}


def is_part(schema: JsonSchema | None) -> TypeGuard[JsonSchema]:
    """True for a schema that may become a part of another: it stands alone, and is not huge.

    Otherwise types of values that are made of each other could grow without end.
    """
    todo: list[Any] = [schema]
    seen = 0
    while todo and seen <= _MOST_PARTS:
        part = todo.pop()
        seen += 1
        if isinstance(part, dict):
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
    return schema is not None and "$defs" not in schema and not todo


def _template(template: Template, look: Look) -> JsonSchema | None:
    if template.kind == "literal":
        return {"const": template.text}
    if template.kind == "text":
        return STRING
    if template.path is not None:
        try:
            return at(look(template.path.name), template.path.path)
        except LookupError:
            return None
    assert template.tree is not None
    assignment = template.tree.body[0]
    assert isinstance(assignment, nodes.Assign)
    return _expression(assignment.node)


def _expression(node: nodes.Node) -> JsonSchema | None:
    match node:
        case nodes.Const():
            return {"const": node.value}
        case nodes.Compare() | nodes.Test() | nodes.Not():
            return BOOLEAN
        case nodes.Concat():
            return STRING
        case nodes.List() | nodes.Tuple():
            return LIST
        case nodes.Dict():
            return {"type": "object"}
        case nodes.Filter():
            return _FILTERS.get(node.name)
        case _:
            return None


def element(schema: JsonSchema | None) -> JsonSchema | None:
    """The schema of any item of a list of `schema`."""
    if schema is None:
        return None
    prefix = schema.get("prefixItems")
    if prefix:
        return {"anyOf": list(prefix)}
    try:
        return at(schema, [0])
    except LookupError:
        return None
