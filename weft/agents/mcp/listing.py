"""Vets the tools that a server lists: names, schemas and effects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.untrusted import Effects, effect_of, identifiers, printable, vet_schema
from weft.agents.untrusted.schema import count_values, warn_of_contradictions
from weft.core.values import Effect, JsonSchema, ToolSpec
from weft.validation import SchemaRefused

_MAX_PARTS: Final = 10_000
_MAX_NAME: Final = 128
_MAX_DESCRIPTION: Final = 4_000
_PLAIN: Final = "result"
_NOTHING_SAID: Final[Effects] = {}


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server.

    name        the server's name for it
    spec        weft's spec, under the local name
    output      the schema of its structured content, or None
    wrapped     its value is the field `result` of the structured content
    """

    name: str
    spec: ToolSpec
    output: JsonSchema | None = None
    wrapped: bool = False


class ToolListing:
    """Collects the tools of one server, page by page. `refused`: the reasons of refused tools."""

    def __init__(self, max_tools: int) -> None:
        self._max_tools = max_tools
        self._found: dict[str, _ListedTool] = {}
        self._parts = 0
        self.refused: dict[str, str] = {}

    def vet(self, result: dict[str, Any]) -> None:
        """Add the tools of one page, and reduce `result` to what the SDK needs.

        Result schemas are removed: weft checks them itself.
        """
        accepted = []
        for raw in result["tools"]:
            if len(self._found) >= self._max_tools:
                self.refused["..."] = f"more than {self._max_tools} tools"
                break
            found = self._vet(raw)
            if found is not None:
                self._found[found.name] = found
                accepted.append({"name": found.name, "inputSchema": found.parameters})
        result["tools"] = accepted

    def tools(
        self, prefix: str, only: Collection[str], effects: Effects = _NOTHING_SAID
    ) -> dict[str, ServerTool]:
        """The tools by their local names: identifiers that begin with `prefix`.

        `only` and `effects` hold names of the server or their identifiers, without the prefix.
        """
        names = identifiers(self._found, prefix)
        return {
            local_name: (found := self._found[name]).tool(
                local_name, effect_of(effects, name, found.effect)
            )
            for name, local_name in names.items()
            if not only or name in only or local_name.removeprefix(prefix) in only
        }

    def _vet(self, raw: object) -> _ListedTool | None:
        name = raw.get("name") if isinstance(raw, Mapping) else None
        try:
            return self._read(name, raw)
        except SchemaRefused as error:
            called = printable(name, 60) if isinstance(name, str) else ""
            self.refused[called or "a tool without a name"] = str(error)
            return None

    def _read(self, name: object, raw: object) -> _ListedTool:
        if not isinstance(raw, Mapping) or not isinstance(name, str):
            raise SchemaRefused("it has no name")
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise SchemaRefused(f"a name is 1 to {_MAX_NAME} characters that can be printed")
        if name in self._found:
            raise SchemaRefused("it is listed twice; the first one counts")
        schemas = raw.get("inputSchema"), raw.get("outputSchema")
        self._parts += count_values(schemas)
        if self._parts > _MAX_PARTS:
            raise SchemaRefused("the server's schemas are too large, taken together")
        hints = raw.get("annotations")
        return _ListedTool(
            name,
            _description(raw),
            _parameters(vet_schema(schemas[0])),
            None if schemas[1] is None else vet_schema(schemas[1]),
            _effect_hint(hints if isinstance(hints, Mapping) else {}),
        )


@dataclass(frozen=True, slots=True)
class _ListedTool:
    name: str
    description: str
    parameters: JsonSchema
    output: JsonSchema | None
    effect: Effect

    def tool(self, local_name: str, effect: Effect) -> ServerTool:
        """The tool under its local name."""
        wrapped = self.output is not None and _is_wrapper(self.output)
        result = _field(self.output, _PLAIN) if self.output and wrapped else self.output
        spec = ToolSpec(local_name, self.description, self.parameters, result, effect=effect)
        warn_of_contradictions(local_name, self.parameters)
        return ServerTool(self.name, spec, self.output, wrapped)


def _effect_hint(hints: Mapping[str, Any]) -> Effect:
    """The effect that the server declares for a tool, without proof."""
    if hints.get("readOnlyHint") is True:
        return "pure"
    return "idempotent" if hints.get("idempotentHint") is True else "unknown"


def _description(raw: Mapping[str, Any]) -> str:
    texts = (raw.get(key) for key in ("description", "title"))
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return printable(text, _MAX_DESCRIPTION, lines=True).strip()


def _parameters(schema: dict[str, Any]) -> JsonSchema:
    """The parameter schema, closed where it lists properties and allows no others explicitly."""
    if schema.get("type") != "object":
        raise SchemaRefused("the schema of its parameters is no object's")
    composed = schema.keys() & {"allOf", "anyOf", "oneOf", "$ref", "if"}
    if "properties" in schema and not composed:
        schema.setdefault("additionalProperties", False)
    return schema


def _is_wrapper(output: JsonSchema) -> bool:
    """Whether the object only wraps a value that is none: MCP has no other results."""
    properties = output.get("properties")
    return (
        isinstance(properties, Mapping)
        and list(properties) == [_PLAIN]
        and _PLAIN in output.get("required", ())
    )


def _field(output: JsonSchema, name: str) -> JsonSchema:
    field = output["properties"][name]
    definitions = {key: output[key] for key in ("$defs", "definitions") if key in output}
    return {**field, **definitions} if isinstance(field, Mapping) else {}
