"""Random tool registries: what a plan's grammar and checker have to cope with. Calls no tool."""

from __future__ import annotations

import random
from collections.abc import Callable

from evals.random_schemas import Schema, random_schema
from weft.core.values import ToolSpec

_VERBS = ("find", "get", "list", "make", "send", "count", "book", "rate", "join", "translate")
_NOUNS = ("flight", "price", "user", "mail", "room", "report", "route", "weather", "item", "order")
_ODD = ("größe", "web.search", "get-all", 'say "it"', "join", "漢字", "$1", "a\\b")
_NAMES = (
    "query",
    "city",
    "limit",
    "date",
    "tags",
    "text",
    "ids",
    "unit",
    "options",
    "für",
    "x y",
    'a"b',
)
_SAID = ('Says "hello".', "It's a tool (really).", "Zwei Zeilen:\n1. x()", "Costs $1.", "漢字", "")
_NODE = {"$ref": "#/$defs/node"}
_TREE: Schema = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "label": {"type": "string", "maxLength": 12},
                "below": {"type": "array", "items": _NODE},
            },
            "required": ["label"],
        }
    },
}
_SPECIAL: tuple[Schema, ...] = (
    {},
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": False},
    {"type": ["string", "null"]},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "integer", "multipleOf": 5},
    {"allOf": [{"type": "integer"}, {"minimum": 3}], "description": 'at "least" 3'},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "maxItems": 2},
    {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]},
    _TREE,
)


def random_registry(source: random.Random, *, odd: bool = True) -> tuple[ToolSpec, ...]:
    """One to six tools with nested parameters and results; `odd`: some names nobody should give."""
    words = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
    names = source.sample(words, source.randint(1, 6))
    if odd and source.random() < 0.3:
        names[0] = source.choice(_ODD)
    return tuple(_tool(source, name) for name in names)


def _tool(source: random.Random, name: str) -> ToolSpec:
    parameters = source.sample(_NAMES, source.randint(0, 4))
    schema = {
        "type": "object",
        "properties": {parameter: _parameter(source) for parameter in parameters},
        "required": [parameter for parameter in parameters if source.random() < 0.6],
        "additionalProperties": False,
        "$defs": _TREE["$defs"],
    }
    return ToolSpec(name, source.choice(_SAID), schema, _result(source))


def _parameter(source: random.Random) -> Schema:
    if source.random() < 0.3:
        return source.choice(_SPECIAL)
    schema = random_schema(source, source.randint(0, 2))
    return {**schema, "description": source.choice(_SAID)}


def _result(source: random.Random) -> Schema | None:
    ways: list[Callable[[], Schema | None]] = [
        lambda: None,
        lambda: random_schema(source, 2),
        lambda: source.choice(_SPECIAL),
        lambda: _record(source),
        lambda: {"type": "array", "items": _record(source)},
        lambda: {"type": "array", "items": source.choice(_SPECIAL[4:8])},
    ]
    return source.choice(ways)()


def _record(source: random.Random) -> Schema:
    fields = {
        "name": {"type": "string"},
        "price": {"type": "number"},
        "größe": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "open": {"type": "boolean"},
        "state": {"enum": ["new", 'qu"oted', "done"]},
        "made of": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
        },
    }
    chosen = source.sample(sorted(fields), source.randint(1, 4))
    return {
        "type": "object",
        "properties": {name: fields[name] for name in chosen},
        "required": chosen,
    }
