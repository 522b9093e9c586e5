"""Checks of call arguments against types, with the types of templates as far as inferred."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from jinja2 import nodes

from weft.core.errors import TypeMismatch, UnknownReference
from weft.core.schema import at, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.validation import violation
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.expressions import Template, value_template
from weft.workflow.document.expressions.sandbox import to_json
from weft.workflow.document.expressions.template import ValueTemplate
from weft.workflow.document.remedies import missing_argument
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit

SchemaOf = Callable[[str], JsonSchema | None]
"""Gives the schema of a name."""

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


def infer(value: ValueTemplate, look: SchemaOf) -> JsonSchema | None:
    """The schema of a value with templates."""
    return _infer(value.tree, look)


def _infer(tree: Any, look: SchemaOf) -> JsonSchema | None:
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
    """True for a schema that may become part of another: self-contained, and not huge.

    Otherwise schemas of values composed of each other could grow without end.
    """
    todo: list[Any] = [schema]
    count = 0
    while todo and count <= _MOST_PARTS:
        part = todo.pop()
        count += 1
        if isinstance(part, dict):
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
    return schema is not None and "$defs" not in schema and not todo


def _template(template: Template, look: SchemaOf) -> JsonSchema | None:
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
    """The schema of the items of a list of `schema`."""
    if schema is None:
        return None
    prefix = schema.get("prefixItems")
    if prefix:
        return {"anyOf": list(prefix)}
    try:
        return at(schema, [0])
    except LookupError:
        return None


@dataclass(frozen=True, slots=True)
class CalleeParameters:
    """The parameters of a callee. `what` names it in messages; `closed`: it has no others."""

    what: str
    schemas: Mapping[str, JsonSchema | None]
    required: tuple[str, ...]
    closed: bool

    @classmethod
    def of_tool(cls, spec: ToolSpec) -> CalleeParameters:
        """The parameters of a tool."""
        declared = spec.parameters
        names = declared.get("properties", {})
        return cls(
            f"the tool `{spec.name}`",
            {name: at(declared, [name]) for name in names},
            tuple(declared.get("required", ())),
            declared.get("additionalProperties") is False,
        )

    @classmethod
    def of_workflow(cls, document: WorkflowDocument) -> CalleeParameters:
        """The inputs of a workflow."""
        inputs = document.inputs
        required = tuple(name for name, declared in inputs.items() if declared.required)
        schemas = {name: declared.root for name, declared in inputs.items()}
        return cls(f"the workflow `{document.name}`", schemas, required, True)


def check_arguments(
    unit: Unit,
    parameters: CalleeParameters,
    given: Mapping[str, Any],
    node: KeyPath,
    look: SchemaOf,
) -> None:
    """Check the arguments under `with` of `node`.

    Raises: `UnknownReference` or `TypeMismatch` through `unit.fail`.
    """
    for name, value in given.items():
        path = (*node, "with", name)
        if name not in parameters.schemas:
            if parameters.closed:
                _unknown(unit, parameters.what, name, list(parameters.schemas), path)
            continue
        parsed = value_template(value)
        target = parameters.schemas[name]
        why = mismatch(infer(parsed, look), target)
        if (
            why is None
            and target is not None
            and not parsed.names
            and all(template.kind == "literal" for _, template in parsed.parts)
        ):
            why = violation(value, target)
        if why is not None:
            message = f"`{name}` of {parameters.what} cannot take this: {why}"
            unit.fail(TypeMismatch(message, hint=_takes(target or {})), path)
    for name in parameters.required:
        if name not in given:
            _missing(unit, parameters.what, name, list(given), node)


def check_writes(
    unit: Unit, given: Mapping[str, Any], node: KeyPath, look: SchemaOf, log: DefectLog
) -> None:
    """Check the types of what `node` writes to the state; `log` has the defects."""
    for name, value in given.items():
        field, parsed = unit.document.state[name], value_template(value)
        why = mismatch(infer(parsed, look), field.written)
        if why is not None:
            how = f"`{field.reduce}` of " if field.reduce else ""
            error = TypeMismatch(
                f"{how}`state.{name}` cannot take this: {why}", hint=_takes(field.written)
            )
            with log:
                unit.fail(error, (*node, "writes", name))


def _takes(schema: JsonSchema) -> str:
    """What fits a schema, as far as it says so in short."""
    options = schema.get("anyOf", ())
    kinds = [part.get("type") for part in (schema, *options) if isinstance(part, Mapping)]
    words = [kind for kind in kinds if isinstance(kind, str)]
    return f"it takes {' or '.join(dict.fromkeys(words)) or to_json(schema)}"[:120]


def check_call(
    unit: Unit,
    function: Callable[..., Any] | None,
    given: Mapping[str, Any],
    node: KeyPath,
    *,
    first: int = 0,
) -> None:
    """Check that a plain function takes `first` positional arguments and `given` by name.

    A function without a signature passes. Raises: `UnknownReference` or `TypeMismatch`.
    """
    try:
        parameters = inspect.signature(function).parameters if function is not None else None
    except (TypeError, ValueError):
        parameters = None
    if parameters is None:
        return
    what = f"the function `{getattr(function, '__name__', 'function')}`"
    by_order = [p.name for p in parameters.values() if p.kind in _BY_ORDER][:first]
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    by_name = [p.name for p in parameters.values() if p.kind in _BY_NAME and p.name not in by_order]
    for name in given:
        if name not in by_name and not takes_any:
            _unknown(unit, what, name, by_name, (*node, "with", name))
    for name in by_name:
        if parameters[name].default is inspect.Parameter.empty and name not in given:
            _missing(unit, what, name, list(given), node)
    only = [p for p in parameters.values() if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    for parameter in only[first:]:
        if parameter.default is inspect.Parameter.empty:
            hint = "in Python give it by position: flow.call(function, value)"
            error = TypeMismatch(f"{what} needs `{parameter.name}`", hint=hint)
            unit.fail(error, node)


_BY_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _unknown(unit: Unit, what: str, name: str, choices: list[str], path: KeyPath) -> None:
    hint = choice_hint(name, choices) or "it takes nothing"
    unit.fail(UnknownReference(f"{what} has no `{name}`", hint=hint), path, at_key=True)


def _missing(unit: Unit, what: str, name: str, given: list[str], node: KeyPath) -> None:
    hint = missing_argument(name, given, in_python=unit.in_python)
    unit.fail(TypeMismatch(f"{what} needs `{name}`", hint=hint), (*node, "with"), at_key=True)
