"""OpenAI's rules for strict schemas, beside a slow oracle."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.serving.openai.strict import MOST_CHOICES, MOST_LEVELS, MOST_PROPERTIES, is_strict

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, Any]:
    schema = closed()
    for _ in range(levels - 1):
        schema = closed(a=schema)
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        closed(),
        closed(a=TEXT, b={"type": ["number", "null"], "minimum": 0}),
        closed(type=TEXT, required=TEXT, items=TEXT, allOf=TEXT),
        closed(a={"anyOf": [TEXT, closed(b={"type": "integer"})]}),
        closed(a={"type": "array", "items": {"$ref": "#/$defs/b"}, "maxItems": 3})
        | {"$defs": {"b": closed(again={"anyOf": [{"$ref": "#"}, {"type": "null"}]})}},
        closed(a={"type": "string", "enum": ["x", "y"], "description": "which"}),
        closed(a={"type": "string", "format": "date", "pattern": "^2"}),
        closed(a={"type": "object", "additionalProperties": False}),
        nested(MOST_LEVELS),
        closed(**{f"p{n}": TEXT for n in range(MOST_PROPERTIES)}),
    ],
)
def test_what_openai_accepts(schema: dict[str, Any]) -> None:
    assert is_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        TEXT,
        {"type": "array", "items": TEXT},
        {"anyOf": [closed(a=TEXT)]},
        closed(a=TEXT) | {"anyOf": [closed(a=TEXT)]},
        {"$ref": "#/$defs/a", "$defs": {"a": closed()}},
        {"type": ["object", "null"], **{k: v for k, v in closed().items() if k != "type"}},
        closed(a=TEXT) | {"required": []},
        closed(a=TEXT) | {"required": ["a", "b"]},
        closed(a=TEXT) | {"additionalProperties": True},
        closed(a={"type": "object", "properties": {}}),
        *(closed(a=TEXT) | {word: [closed()]} for word in ("allOf", "oneOf")),
        closed(a=TEXT) | {"not": TEXT},
        closed(a=TEXT) | {"if": TEXT, "then": TEXT},
        closed(a=TEXT) | {"patternProperties": {"x": TEXT}},
        closed(a={**TEXT, "minLength": 1}),
        closed(a={**TEXT, "default": "x"}),
        closed(a={**TEXT, "format": "uri"}),
        closed(a={"enum": ["x"]}),
        closed(a={}),
        closed(a=True),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "items": TEXT, "uniqueItems": True}),
        closed(a={"$ref": "#/$defs/nowhere"}),
        closed(a={"$ref": "other.json#/a"}),
        closed(a={"$ref": "#/$defs/b", "description": "d"}) | {"$defs": {"b": TEXT}},
        closed(a={"anyOf": []}),
        closed(a={"type": "word"}),
        nested(MOST_LEVELS + 1),
        nested(5_000),
        closed(**{f"p{n}": TEXT for n in range(MOST_PROPERTIES + 1)}),
        closed(a={"type": "string", "enum": [f"{n}" for n in range(MOST_CHOICES + 1)]}),
        closed(a={"type": "string", "enum": [f"{n:062d}" for n in range(251)]}),
        closed(a={"type": "string", "const": "x" * 120_000}),
    ],
)
def test_what_openai_refuses(schema: dict[str, Any]) -> None:
    assert not is_strict(schema)


ALLOWED = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"),
    *("$ref", "$defs", "definitions", "title", "description", "pattern", "format", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
}


def oracle(schema: dict[str, Any]) -> bool:
    """The rules once more: all schemas in a list, each rule over the whole list."""
    everything: list[Any] = []

    def collect(part: Any) -> None:
        everything.append(part)
        if isinstance(part, dict):
            inside = [*part.get("properties", {}).values(), *part.get("$defs", {}).values()]
            for each in inside + part.get("anyOf", []) + [part[k] for k in ["items"] if k in part]:
                collect(each)

    collect(schema)
    if not all(isinstance(part, dict) and set(part) <= ALLOWED for part in everything):
        return False
    objects = [part for part in everything if part.get("type") == "object" or "properties" in part]
    refs = [part for part in everything if "$ref" in part]
    known = {"#", *(f"#/$defs/{name}" for name in schema.get("$defs", {}))}
    rules = [
        schema.get("type") == "object" and "anyOf" not in schema,
        all(part.get("additionalProperties") is False for part in objects),
        all(set(part.get("required", [])) == set(part.get("properties", {})) for part in objects),
        all({"type", "anyOf", "$ref"} & set(part) for part in everything),
        all(len(part) == 1 and part["$ref"] in known for part in refs),
        all("items" in part for part in everything if part.get("type") == "array"),
        all(part["anyOf"] for part in everything if "anyOf" in part),
    ]
    return all(rules)


NAMES = st.sampled_from(["a", "b", "type", "items", "$ref"])
LEAVES: st.SearchStrategy[Any] = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "minimum": 0},
        {"type": "string", "enum": ["x"]},
        {"$ref": "#"},
        {"$ref": "#/$defs/d"},
    ]
)


def larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(NAMES, parts, max_size=3).map(lambda found: closed(**found)),
        parts.map(lambda part: {"type": "array", "items": part}),
        st.lists(parts, min_size=1, max_size=2).map(lambda found: {"anyOf": found}),
    )


PARTS = st.recursive(LEAVES, larger, max_leaves=5)
BREAKS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"minLength": 1},
    {"oneOf": [TEXT]},
    {"additionalProperties": True},
    {"required": ["other"]},
    {"default": None},
    {"anyOf": []},
    {"description": "d"},
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAMES, PARTS, max_size=3), st.booleans(), st.sampled_from(BREAKS), st.data())
def test_the_rules_are_those_of_the_oracle(
    properties: dict[str, Any], defined: bool, change: dict[str, Any], data: st.DataObject
) -> None:
    schema = copy.deepcopy(closed(**properties)) | ({"$defs": {"d": dict(TEXT)}} if defined else {})
    places = [schema]
    for place in places:
        inside = [*place.get("properties", {}).values(), place.get("items")]
        places += [each for each in inside + place.get("anyOf", []) if isinstance(each, dict)]
    data.draw(st.sampled_from(places)).update(copy.deepcopy(change))
    assert is_strict(schema) is oracle(schema)
