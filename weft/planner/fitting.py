"""Whether an argument, a literal in which references may stand, can fit a parameter's schema.

Knows no plan; what cannot be proved not to fit may fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.core.schema import at, mismatch, references
from weft.core.values import JsonSchema
from weft.planner.plan import Ref, Value, refs_in

SchemaOf = Callable[[Ref], JsonSchema | None]
"""The schema of what a reference stands for; None where nothing is known of it."""


def misfit(value: Value, target: JsonSchema | None, schema_of: SchemaOf) -> str | None:
    """Why `value` can never fit `target`, in words, or None when it may."""
    if target is None:
        return None
    whole = mismatch(_as_schema(value, schema_of), target)
    return whole or _inside(value, target, schema_of)


def _as_schema(value: Value, schema_of: SchemaOf) -> JsonSchema:
    """A schema that nothing but `value` fits, as far as what references stand for is known."""
    match value:
        case Ref():
            schema = schema_of(value)
            return {} if schema is None else schema
        case Mapping():
            members = {name: _part(item, schema_of) for name, item in value.items()}
            shape = {
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
            return shape if _refers(value) else {**shape, "const": _plain(value)}
        case list() | tuple():
            shape = {
                "type": "array",
                "prefixItems": [_part(item, schema_of) for item in value],
                "minItems": len(value),
                "maxItems": len(value),
            }
            return shape if _refers(value) else {**shape, "const": _plain(value)}
        case _:
            return {"const": value}


def _part(value: Value, schema_of: SchemaOf) -> JsonSchema:
    """The same for a part of a value. A schema with references of its own only stands alone, so
    that nothing is said of it here; `_inside` looks at it.
    """
    schema = _as_schema(value, schema_of)
    return {} if isinstance(value, Ref) and any(references(schema)) else schema


def _inside(value: Value, target: JsonSchema | None, schema_of: SchemaOf) -> str | None:
    """Why a reference inside the list or object `value` can never fit its place in `target`."""
    parts: Iterable[tuple[str | int, Value]] = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    for step, part in parts:
        if not _refers(part):
            continue
        place = f"[{step!r}]" if isinstance(step, str) else f"[{step}]"
        try:
            inner = at(target, [step])
        except LookupError as error:
            return f"{place}: {error}"
        if why := misfit(part, inner, schema_of):
            return f"{place}: {why}"
    return None


def _refers(value: Value) -> bool:
    return next(refs_in(value), None) is not None


def _plain(value: Value) -> Any:
    """`value` with lists for tuples, as schemas have them."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
