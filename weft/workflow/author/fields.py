"""The fields of single nodes: which of them a model may write, and where they stand in a file.

The own fields of a node are all of its keys but its bodies, and the results of its bodies:
`result` of a map or a loop, `results` by case of a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weft.core.values import ToolSpec
from weft.validation import violation
from weft.workflow.author.text_limits import fits_text
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import node_address
from weft.workflow.document.spec.nodes import KIND_NAMES
from weft.workflow.document.splice import REMOVED

OUTPUTS: Final = "outputs"
"""The part of a document that holds its outputs, beside the nodes."""
_BODY: Final = {"map": "do", "loop": "loop", "branch": "cases"}
_TEXT: Final = {"type": "string", "maxLength": 8000}
_VALUES: Final = {"type": "object", "maxProperties": 40}
_OWN: Final[Mapping[str, Mapping[str, Any]]] = {
    "tool": {"with": _VALUES},
    "model": {"prompt": _TEXT},
    "map": {"map": _TEXT},
    "branch": {"branch": _TEXT},
    "loop": {"start": {}, "until": _TEXT, "max": {"type": "integer", "minimum": 1}},
    "value": {"value": {}},
    "ask": {"ask": _TEXT, "schema": {}},
}
"""What is written of a node that the skeleton has."""
_MORE: Final[Mapping[str, Mapping[str, Any]]] = {
    "model": {"system": _TEXT, "messages": {}, "with": _VALUES, "schema": {}},
    "map": {"result": {}, "valid": _TEXT, "otherwise": {}},
    "loop": {"result": {}},
    "branch": {"results": _VALUES},
    "call": {"with": _VALUES},
    "workflow": {"with": _VALUES},
    "reduce": {"over": {}, "with": _VALUES},
    "join": {
        "join": {"type": "array", "items": {"type": "string"}},
        "valid": _TEXT,
        "otherwise": {},
    },
    "break": {"break": _TEXT, "value": {}},
}
"""What may be repaired besides. Never what names code, files or models."""
_OPTIONAL: Final = ("start", "schema")
_ANY_NODE: Final = {"when": _TEXT, "after": {"type": "array", "items": {"type": "string"}}}
"""Of every node."""


def kind_of(node: Mapping[str, Any]) -> str:
    """The kind of a node; empty where no key says it."""
    return next((kind for kind in KIND_NAMES if kind in node), "")


def node_paths(raw: Any) -> Iterator[tuple[KeyPath, str]]:
    """The paths of all nodes of a document in plain data, with their addresses; it may be wrong."""
    nodes = raw.get("nodes") if isinstance(raw, dict) else None
    for path, _ in _nodes(nodes, ("nodes",)):
        yield path, node_address(path)


def _nodes(nodes: Any, path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        if isinstance(node, dict):
            yield from _node(node, (*path, name))


def _node(node: dict[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    yield path, node
    for below, body in body_paths(node):
        if "nodes" in body:
            yield from _nodes(body["nodes"], (*path, *below, "nodes"))
        else:
            yield from _node(body, (*path, *below))


def body_paths(node: Mapping[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """The bodies of a node, with their paths in it."""
    key = _BODY.get(kind_of(node))
    body = node.get(key) if key is not None else None
    if key == "cases":
        for case, each in body.items() if isinstance(body, dict) else ():
            if isinstance(each, dict):
                yield (key, case), each
    elif key is not None and isinstance(body, dict):
        yield (key,), body


def at(raw: Any, path: KeyPath) -> Any:
    """The value at a path. Raises: `LookupError`, `TypeError`."""
    for key in path:
        raw = raw[key]
    return raw


def own_fields(node: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a node without the nodes in its bodies."""
    body_key = _BODY.get(kind_of(node))
    fields = {key: value for key, value in node.items() if key != body_key}
    results = {path: body["result"] for path, body in body_paths(node) if "result" in body}
    for path, result in results.items():
        if len(path) == 1:
            fields["result"] = result
        else:
            fields.setdefault("results", {})[path[1]] = result
    return fields


def field_changes(
    path: KeyPath, node: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[KeyPath, Any]:
    """What differs between the own fields of the `node` at `path` and `fields`, by path."""
    changes: dict[KeyPath, Any] = {}
    before = own_fields(node)
    body = _BODY.get(kind_of(node), "")
    for key in before.keys() | fields.keys():
        old, new = before.get(key, REMOVED), fields.get(key, REMOVED)
        if _same(old, new):
            continue
        if key == "result" and body:
            changes[*path, body, "result"] = new
        elif key == "results" and body and isinstance(new, dict):
            for case, result in new.items():
                if not _same(result, before.get("results", {}).get(case, REMOVED)):
                    changes[*path, body, case, "result"] = result
        else:
            changes[*path, key] = new
    return dict(sorted(changes.items(), key=lambda each: str(each[0])))


def _same(one: object, other: object) -> bool:
    """Equal, and not merely as numbers: `1` is not `True`."""
    return one is other or (type(one) is type(other) and one == other)


def fields_schema(kind: str, tool: ToolSpec | None = None) -> dict[str, Any]:
    """The JSON Schema of what a model writes of a node of the skeleton."""
    own = dict(_OWN[kind])
    if tool is not None:
        own["with"] = arguments_schema(tool)
    return _object({**own, **_ANY_NODE}, [name for name in own if name not in _OPTIONAL])


def repaired_schema(
    kind: str, tools: Sequence[str] = (), keys: Sequence[str] = ()
) -> dict[str, Any]:
    """The JSON Schema of repaired fields: those that change, and keys in `remove` that go.

    `keys`: of the outputs.
    """
    if kind == OUTPUTS:
        return _object({key: {} for key in keys}, ())
    fields = {**_OWN.get(kind, {}), **_MORE.get(kind, {}), **_ANY_NODE}
    if kind == "tool":
        fields = {"tool": {"enum": list(tools)}, **fields}
    fields["remove"] = {"type": "array", "items": {"type": "string"}, "maxItems": 8}
    return _object(fields, ())


def arguments_schema(tool: ToolSpec) -> dict[str, Any]:
    """The arguments of a tool, each a value of its own type or an expression."""
    declared = tool.parameters
    properties = {
        name: {"anyOf": [_TEXT, _plain_type(one)]}
        for name, one in declared.get("properties", {}).items()
    }
    return _object(properties, declared.get("required", ()))


def _plain_type(schema: object) -> dict[str, Any]:
    """The type of a parameter without references, which are checked later anyway."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return {"type": kind} if isinstance(kind, str | list) else {}


def _object(properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def written_fields(kind: str, answer: object, tool: ToolSpec | None) -> dict[str, Any] | None:
    """The fields in a model's answer for a node of the skeleton; None where it does not fit."""
    if violation(answer, fields_schema(kind, tool)) is not None or not fits_text(answer):
        return None
    assert isinstance(answer, dict)
    return answer


def repaired_fields(
    fields: Mapping[str, Any], answer: object, kind: str, tools: Sequence[str], wrong: Sequence[str]
) -> dict[str, Any] | None:
    """`fields` as a model's answer repairs them; None where the answer is refused.

    `wrong`: the keys that defects name. Only these, if they say nothing about the kind, can go.
    """
    if violation(answer, repaired_schema(kind, tools, list(fields))) is not None:
        return None
    if not fits_text(answer):
        return None
    assert isinstance(answer, dict)
    answer = dict(answer)
    removed = answer.pop("remove", [])
    known = {*_OWN.get(kind, {}), *_MORE.get(kind, {})}
    if any(key not in wrong or key in known or key == kind for key in removed):
        return None
    if "results" in answer and set(answer["results"]) != set(fields.get("results", {})):
        return None
    if "result" in answer and "result" not in fields:
        return None
    kept = {key: value for key, value in fields.items() if key not in removed}
    return {**kept, **answer}


def visible_names(raw: Mapping[str, Any], path: KeyPath) -> list[str]:
    """The names that the part at `path` may use: inputs, nodes beside and around it, and items."""
    names = list(raw.get("inputs") or {})
    if path[:1] == (OUTPUTS,):
        return [*names, *raw["nodes"]]
    for end in range(1, len(path)):
        if path[end - 1] == "nodes":
            names += [name for name in at(raw, path[:end]) if name != path[end]]
        elif path[end] in ("do", "loop") and isinstance(node := at(raw, path[:end]), dict):
            kind = kind_of(node)
            if kind in ("map", "loop") and path[end] == _BODY[kind]:
                names += [node.get("as", "item" if kind == "map" else "value")]
                names += ["index" if kind == "map" else "iteration"]
    return list(dict.fromkeys(map(str, names)))
