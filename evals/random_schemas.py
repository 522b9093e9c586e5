"""Random JSON Schemas of the keywords that weft's own documents use."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
_NAMES = ("name", "größe", 'with "quotes"', "a", "tags", "score", "next step", "漢字")
_VALUES = ("red", "green", 'quo"te', "line\nbreak", "漢字", "", 3, -1.5, True, None)


def random_schema(source: random.Random, depth: int = 3) -> Schema:
    """A schema that something fits, nested at most `depth` deep."""
    leaves: list[Callable[[random.Random], Schema]] = [_string, _integer, _number, _fixed, _choice]
    kinds = [_object, _array, _any_of, *leaves]
    if depth == 0:
        return source.choice(leaves)(source)
    kind = source.choice(kinds)
    return kind(source) if kind in leaves else kind(source, depth)  # type: ignore[operator]


def _string(source: random.Random) -> Schema:
    shape = source.randrange(5)
    if shape == 0:
        return {"type": "string", "pattern": source.choice(["^[a-z]{2,5}$", "^(ab|c)+$", "[0-9]"])}
    if shape == 1:
        return {"type": "string", "format": source.choice(["date", "uuid", "email", "date-time"])}
    low = source.randint(0, 4)
    return {"type": "string", "minLength": low, "maxLength": low + source.randint(0, 9)}


def _integer(source: random.Random) -> Schema:
    low = source.randint(-200, 200)
    bounds = {"minimum": low, "maximum": low + source.randint(0, 500)}
    return {"type": "integer", **(bounds if source.random() < 0.7 else {})}


def _number(source: random.Random) -> Schema:
    low = source.randint(-20, 20)
    return {"type": "number", **({"minimum": low} if source.random() < 0.5 else {})}


def _fixed(source: random.Random) -> Schema:
    return source.choice([{"type": "boolean"}, {"type": "null"}, {"const": source.choice(_VALUES)}])


def _choice(source: random.Random) -> Schema:
    return {"enum": source.sample(_VALUES, source.randint(1, 5))}


def _object(source: random.Random, depth: int) -> Schema:
    names = source.sample(_NAMES, source.randint(0, 4))
    return {
        "type": "object",
        "properties": {name: random_schema(source, depth - 1) for name in names},
        "required": [name for name in names if source.random() < 0.7],
        "additionalProperties": False,
    }


def _array(source: random.Random, depth: int) -> Schema:
    low = source.randint(0, 2)
    bounds = {"minItems": low, "maxItems": low + source.randint(0, 2)}
    return {
        "type": "array",
        "items": random_schema(source, depth - 1),
        **(bounds if source.random() < 0.8 else {}),
    }


def _any_of(source: random.Random, depth: int) -> Schema:
    return {"anyOf": [random_schema(source, depth - 1) for _ in range(source.randint(1, 3))]}
