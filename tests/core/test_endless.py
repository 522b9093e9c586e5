"""Schemas whose values would have to hold themselves."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.schema.comparison import endless


def chain(**way: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"next": way}, "required": ["next"]}


THROUGH_DEFS = {
    "$defs": {
        "a": chain(**{"$ref": "#/$defs/b"}),
        "b": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
    },
    "$ref": "#/$defs/a",
}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        chain(**{"$ref": "#"}),
        chain(anyOf=[{"$ref": "#"}, chain(**{"$ref": "#"})]),
        chain(allOf=[{"type": "object"}, {"$ref": "#"}]),
        {"type": "array", "prefixItems": [{"type": "null"}, {"$ref": "#"}], "minItems": 2},
        {"type": "object", "required": ["x"], "additionalProperties": {"$ref": "#"}},
        THROUGH_DEFS,
    ],
)
def test_one_that_never_ends(schema: dict[str, Any]) -> None:
    assert endless(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
        chain(anyOf=[{"$ref": "#"}, {"type": "null"}]),
        chain(type="array", items={"$ref": "#"}),
        chain(const={"next": 1}),
        chain(**{"$ref": "#/nowhere"}),
        {"type": "array", "prefixItems": [{"type": "null"}, {"$ref": "#"}], "minItems": 1},
        {"type": ["object", "null"], "properties": {"x": {"$ref": "#"}}, "required": ["x"]},
        {"type": "object", "required": 3, "properties": 4, "allOf": 5, "anyOf": [6]},
    ],
)
def test_one_that_ends(schema: dict[str, Any]) -> None:
    assert not endless(schema)


def test_the_same_part_side_by_side_is_no_circle() -> None:
    leaf = {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}
    properties = {"a": leaf, "b": leaf}
    assert not endless({"type": "object", "properties": properties, "required": ["a", "b"]})


def test_one_that_takes_too_long_to_tell_is_left_alone() -> None:
    """Each part needs two of the next: as many ways as 2**40."""
    parts: dict[str, Any] = {"p40": {"type": "null"}}
    for number in range(40):
        way = {"$ref": f"#/$defs/p{number + 1}"}
        parts[f"p{number}"] = {
            "type": "object",
            "properties": {"a": way, "b": way},
            "required": ["a", "b"],
        }
    assert not endless({"$defs": parts, "$ref": "#/$defs/p0"})
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(5000):
        deep = chain(**deep)
    assert not endless(deep)
