"""One-line signatures of tools for prompts, and the parameters in their schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from weft.core.schema import at
from weft.core.schema.keywords import Part, alternatives, conjuncts, listed, parts
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.text.writer import parameter_name, tool_name

_DEPTH: Final = 3
_HOPS: Final = 8
_PARTS: Final = 400
_VALUES: Final = 12
_MEMBERS: Final = 16
_SIMPLE: Final = ("string", "integer", "number", "boolean", "null")


def parameters_of(tool: ToolSpec) -> Mapping[str, JsonSchema | None]:
    """The named parameters in declared order, each with its stand-alone schema.

    None where the schema says nothing. Parameters that are declared impossible are left out.
    """
    found: dict[str, JsonSchema | None] = {}
    for name in _names(tool):
        with suppress(LookupError):
            found[name] = at(tool.parameters, [name])
    return found


def parameter_of(tool: ToolSpec, name: str) -> JsonSchema | None:
    """The schema of the parameter `name`; None where it is undeclared.

    Raises: `LookupError` where the tool does not take it.
    """
    if name not in _names(tool) and not _is_open(tool.parameters):
        raise LookupError(f"{tool.name} has no parameter {name!r}")
    return at(tool.parameters, [name])


def required_by(tool: ToolSpec) -> tuple[str, ...]:
    """The names of the parameters that a call must give."""
    return tuple(name for name in parts(tool.parameters.get("required")) if isinstance(name, str))


def signature(tool: ToolSpec) -> str:
    """`price(item: string, unit?: "kg" | "lb") -> {amount: number}`."""
    required = required_by(tool)
    shown = [
        f"{parameter_name(name)}{'' if name in required else '?'}: {type_text(schema)}"
        for name, schema in parameters_of(tool).items()
    ]
    if _is_open(tool.parameters):
        shown.append("...")
    result = type_text(tool.result)
    returns = "" if result in {"any", "null"} else f" -> {result}"
    return f"{tool_name(tool.name)}({', '.join(shown)}){returns}"


def type_text(schema: JsonSchema | None) -> str:
    """A JSON Schema as a short type: `string[]`, `"kg" | "lb"`, `{sum: number, note?: string}`."""
    return "any" if schema is None else _TypeTexts(schema).text(schema, _DEPTH)


class _TypeTexts:
    """The types of the parts of one schema, with its `$ref`s resolved.

    The depth of objects and lists, and the number of parts, are bounded.
    """

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._left = _PARTS

    def text(self, part: Part | None, depth: int, hops: int = _HOPS) -> str:
        self._left -= 1
        if not isinstance(part, Mapping) or self._left < 0:
            return "any"
        if (values := listed(part)) is not None:
            return self._values(values)
        if hops and (inside := self._composed(part, depth, hops - 1)):
            return inside
        return self._stated(part, depth)

    def _values(self, values: Sequence[Any]) -> str:
        shown = [json.dumps(value, ensure_ascii=False, default=str) for value in values[:_VALUES]]
        return " | ".join([*shown, *(["..."] if len(values) > _VALUES else [])])

    def _composed(self, part: Mapping[str, Any], depth: int, hops: int) -> str:
        """The type from references, allOf, anyOf and oneOf; empty where there are none."""
        for group in alternatives(part):
            found = dict.fromkeys(self.text(one, depth, hops) for one in group)
            return "any" if "any" in found else " | ".join(found)
        texts = (self.text(one, depth, hops) for one in conjuncts(part, self._root))
        return next((text for text in texts if text != "any"), "")

    def _stated(self, part: Mapping[str, Any], depth: int) -> str:
        stated = part.get("type")
        names = [stated] if isinstance(stated, str) else list(parts(stated))
        if not names:
            names = ["object"] if "properties" in part else ["array"] if "items" in part else []
        found = dict.fromkeys(self._kind(str(name), part, depth) for name in names)
        return " | ".join(found) or "any"

    def _kind(self, name: str, part: Mapping[str, Any], depth: int) -> str:
        match name:
            case "object":
                return self._object(part, depth)
            case "array":
                return self._array(part, depth)
            case _:
                return name if name in _SIMPLE else " ".join(name.split())[:20]

    def _object(self, part: Mapping[str, Any], depth: int) -> str:
        properties = part.get("properties")
        if not isinstance(properties, Mapping) or not properties or not depth:
            values = part.get("additionalProperties")
            inner = self.text(values, depth - 1) if isinstance(values, Mapping) and depth else "any"
            return "object" if inner == "any" else f"{{[name]: {inner}}}"
        required = parts(part.get("required"))
        shown = [
            f"{parameter_name(str(name))}{'' if name in required else '?'}: "
            f"{self.text(inner, depth - 1)}"
            for name, inner in list(properties.items())[:_MEMBERS]
        ]
        return f"{{{', '.join(shown)}{', ...' if len(properties) > _MEMBERS else ''}}}"

    def _array(self, part: Mapping[str, Any], depth: int) -> str:
        if not depth:
            return "list"
        if prefix := parts(part.get("prefixItems")):
            return f"[{', '.join(self.text(one, depth - 1) for one in prefix[:_MEMBERS])}]"
        items = self.text(part.get("items"), depth - 1)
        return f"({items})[]" if " | " in items else f"{items}[]"


def _names(tool: ToolSpec) -> Sequence[str]:
    properties = tool.parameters.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _is_open(parameters: JsonSchema) -> bool:
    """Whether undeclared names are allowed: where none are declared, or explicitly."""
    if "properties" not in parameters:
        return parameters.get("additionalProperties") is not False
    return bool(parameters.get("additionalProperties"))
