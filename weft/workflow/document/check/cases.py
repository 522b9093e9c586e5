"""Checks of a branch: every case is one that its value can take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from weft.core.errors import TypeMismatch
from weft.core.schema import mismatch
from weft.core.values import JsonSchema
from weft.workflow.document.check.arguments import SchemaOf, infer
from weft.workflow.document.expressions import value_template
from weft.workflow.document.expressions.sandbox import to_json
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.nodes import BranchNode
from weft.workflow.document.unit import Unit

_OTHERWISE: Final = "default"


def case_of(value: Any) -> str:
    """The case of a value: texts as they are, `true`, `false`, `null`, numbers."""
    return value if isinstance(value, str) else to_json(value)


def check_cases(unit: Unit, step: BranchNode, path: KeyPath, look: SchemaOf) -> None:
    """Check the cases of the branch at `path`; a value written in the document may be any.

    Raises: `TypeMismatch` through `unit.fail` for one that no value of its type can take.
    """
    schema = infer(value_template(step.branch), look)
    if schema is None or _is_written(schema):
        return
    for case in step.cases:
        why = None if case == _OTHERWISE else mismatch(schema, {"enum": _values(case)})
        if why is not None:
            hint = choice_hint(case, _cases(schema)) or f"`{_OTHERWISE}` is taken by all others"
            error = TypeMismatch(f"`branch` never has the case `{case}`: {why}", hint=hint)
            unit.fail(error, (*path, "cases", case), at_key=True)


def _values(case: str) -> list[Any]:
    """The values whose case is `case`: the text itself, and what it means as JSON."""
    try:
        return [case, json.loads(case)]
    except (ValueError, RecursionError):
        return [case]


def _is_written(schema: JsonSchema) -> bool:
    """Whether it is that of a constant, such as a `value` node that somebody edits."""
    options = schema.get("anyOf", ())
    parts = [schema, *(part for part in options if isinstance(part, Mapping))]
    return any("const" in part and "type" not in part for part in parts)


def _cases(schema: JsonSchema) -> list[str]:
    """The cases that a schema lists."""
    if schema.get("type") == "boolean":
        return ["true", "false"]
    values = schema.get("enum")
    return [case_of(value) for value in values] if isinstance(values, list) else []
