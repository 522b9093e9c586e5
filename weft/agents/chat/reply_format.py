"""The format of a model's next reply as a JSON Schema: tool calls, an answer, another plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.core.schema import TypeSchema
from weft.core.values import JsonSchema, ToolSpec

_OF_A_DOCUMENT = ("$id", "$schema")


class SchemaDefinitions:
    """The `$defs` of a schema that is composed of others."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def embed(self, schema: JsonSchema) -> dict[str, Any]:
        """A schema equivalent to `schema` for any place in the composed one.

        One that refers to itself is moved to the definitions, and referred to.
        """
        made = TypeSchema if isinstance(schema, TypeSchema) else dict
        own = made((key, value) for key, value in schema.items() if key not in _OF_A_DOCUMENT)
        name = f"d{len(self.schemas)}"
        rebased = made(_rebase(own, f"#/$defs/{name}"))
        if rebased == own:
            return own
        self.schemas[name] = rebased
        return {"$ref": f"#/$defs/{name}"}


def _rebase(value: Any, place: str) -> Any:
    """`value` with its references to "#" rebased to `place`."""
    if isinstance(value, Mapping):
        return {
            key: place + inner[1:]
            if key == "$ref" and isinstance(inner, str) and inner.startswith("#")
            else _rebase(inner, place)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_rebase(inner, place) for inner in value]
    return value


_THOUGHT_CHARS: Final = 400
_TEXT: Final[JsonSchema] = {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """The reply `{"thought": "...", "next": ...}`, where `next` is one of

        {"call": {"name": "...", "arguments": {...}}}     a single call (`calls` is 1)
        {"calls": [...]}                                  up to `calls` of them
        {"replan": "..."}                                 if `replan`: what is missing
        {"answer": ...}                                   of the schema `answer`, or a text

    `many`: calls come as a list. Without `calls` and `replan` only an answer is allowed.
    """

    tools: tuple[ToolSpec, ...] = ()
    calls: int = 0
    many: bool = False
    replan: bool = False
    answer: JsonSchema | None = None

    @property
    def final(self) -> bool:
        """Whether only an answer is allowed."""
        return not self.calls and not self.replan

    def last(self) -> ReplyFormat:
        """The format that allows only an answer."""
        return replace(self, calls=0, replan=False)

    def schema(self) -> JsonSchema:
        """The JSON Schema of the reply."""
        definitions = SchemaDefinitions()
        choices = []
        if self.calls and self.tools:
            choices.append(self._calls([_call(tool, definitions) for tool in self.tools]))
        if self.replan:
            choices.append(_object(replan={**_TEXT, "maxLength": _THOUGHT_CHARS}))
        answer = _TEXT if self.answer is None else definitions.embed(self.answer)
        choices.append(_object(answer=answer))
        thought = {"type": "string", "maxLength": _THOUGHT_CHARS}
        following = choices[0] if len(choices) == 1 else {"anyOf": choices}
        whole = _object(thought=thought, next=following)
        return {**whole, "$defs": definitions.schemas} if definitions.schemas else whole

    def _calls(self, calls: list[JsonSchema]) -> JsonSchema:
        call = calls[0] if len(calls) == 1 else {"anyOf": calls}
        if not self.many:
            return _object(call=call)
        several = {"type": "array", "items": call, "minItems": 1, "maxItems": self.calls}
        return _object(calls=several)


def _call(tool: ToolSpec, definitions: SchemaDefinitions) -> JsonSchema:
    arguments = {"type": "object", **definitions.embed(tool.parameters)}
    if "$ref" in arguments:
        del arguments["type"]
    return _object(name={"type": "string", "enum": [tool.name]}, arguments=arguments)


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
