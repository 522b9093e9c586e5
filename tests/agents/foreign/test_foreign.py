"""Names, texts, schemas and values of others: bounded, clean, and checked in bounded time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.profile import examples
from weft.agents.foreign import (
    SchemaRefused,
    Secrets,
    TooMuchToCheck,
    identifiers,
    misfit,
    shown,
    vetted,
)
from weft.core.errors import BuildError
from weft.core.ids import is_name


def test_patterns_and_what_they_hold_up_are_left_out() -> None:
    assert vetted({"properties": {"pattern": {"type": "string", "pattern": "(a+)+$"}}}) == {
        "properties": {"pattern": {"type": "string"}}
    }
    open_keys = {"patternProperties": {"^a": {}}, "additionalProperties": False, "minProperties": 1}
    assert vetted(open_keys) == {"minProperties": 1}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"not": {"pattern": "^a"}}, "b"),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "a"),
        ({"if": {"pattern": "^a"}, "then": {"maxLength": 1}, "else": {}}, "bbb"),
        ({"contains": {"pattern": "^a"}, "maxContains": 1}, ["a", "b"]),
        ({"propertyNames": {"pattern": "^a"}}, {"a": 1}),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"pattern": "^a"}}}, "b"),
        ({"additionalProperties": False, "patternProperties": {"^a": {}}}, {"a": 1}),
    ],
)
def test_leaving_patterns_out_refuses_nothing_more(schema: dict[str, Any], value: object) -> None:
    assert Draft202012Validator(schema).is_valid(value)
    assert misfit(value, vetted(schema)) is None


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (7, "must be an object"),
        ({"items": 7}, "is int"),
        ({"type": "strange"}, "not a JSON Schema"),
        ({"properties": []}, "is list"),
        ({"anyOf": {}}, "is dict"),
        ({"$ref": "http://example.org/s"}, "leads nowhere"),
        ({"$ref": "#/$defs/a"}, "leads nowhere"),
        ({"$ref": "#a"}, "leads nowhere"),
        ({"enum": list(range(3000))}, "more than 2,000 parts"),
        ({"description": "x" * 100_000}, "more than 66,000 characters"),
        ({"x" * 70_000: 1}, "more than 66,000 characters"),
    ],
)
def test_schemas_that_are_refused(schema: object, why: str) -> None:
    with pytest.raises(SchemaRefused, match=why):
        vetted(schema)


def test_a_schema_that_is_nested_too_deeply() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"items": schema}
    with pytest.raises(SchemaRefused, match="deeper than 40"):
        vetted(schema)


def doubling(levels: int) -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (doubling(60), "unfolds to more than"),
        ({"$ref": "#"}, "without end"),
        ({"anyOf": [{"$ref": "#"}, {}]}, "without end"),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#"}}}, "without end"),
        ({"if": {}, "then": {"allOf": [{"$ref": "#"}]}}, "without end"),
        ({"items": {"$ref": "#/items"}}, "without end"),
        ({"dependentSchemas": {"a": {"$ref": "#"}}}, "without end"),
    ],
)
def test_schemas_that_never_end_are_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaRefused, match=why):
        vetted(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}},
        {"anyOf": [{"type": "null"}, {"prefixItems": [{"$ref": "#"}]}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"additionalProperties": {"$ref": "#/$defs/a"}}}},
        doubling(8),
    ],
)
def test_schemas_of_trees_are_fine(schema: dict[str, Any]) -> None:
    assert misfit({"a": {"a": {"a": None}}}, vetted(schema)) is None


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_checking_comes_to_an_end() -> None:
    twice = vetted({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}})
    assert misfit(nested(5), twice) is None
    with pytest.raises(TooMuchToCheck, match="too many comparisons"):
        misfit(nested(40), twice)
    once = vetted({"properties": {"a": {"$ref": "#"}}})
    assert misfit(nested(70), once) is None
    with pytest.raises(TooMuchToCheck, match="nested too deeply"):
        misfit(nested(400), once)


def test_long_lists_are_not_compared_item_by_item() -> None:
    unique = vetted({"uniqueItems": True})
    assert misfit([{"a": 1}, {"a": 1}], unique) is not None
    assert misfit([{"a": number} for number in range(5_000)], unique) is None


def test_what_is_wrong_is_said_with_its_place() -> None:
    schema = vetted({"properties": {"a": {"items": {"type": "integer"}}}})
    assert misfit({"a": [1, "x"]}, schema) == "a[1]: 'x' is not of type 'integer'"
    assert misfit({"a": [1]}, schema) is None


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
keywords = st.sampled_from(
    ["type", "items", "properties", "anyOf", "not", "enum", "required", "$ref"]
)
schemas = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "object"])}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "required": st.lists(st.sampled_from("ab"), unique=True),
        },
    ),
    max_leaves=8,
).filter(lambda schema: not isinstance(schema, bool))


@examples(200)
@given(schemas, json)
def test_without_patterns_a_copy_means_the_same(schema: dict[str, Any], value: object) -> None:
    fits = Draft202012Validator(schema).is_valid(value)
    assert (misfit(value, vetted(schema)) is None) == fits


@examples(200)
@given(st.lists(st.text(max_size=80)), st.sampled_from(["", "files_"]))
def test_names_become_identifiers(names: list[str], prefix: str) -> None:
    found = identifiers(names, prefix)
    assert list(found) == list(dict.fromkeys(names))
    assert all(is_name(here) and len(here) <= 64 for here in found.values())
    assert all(here.startswith(prefix) for here in found.values())
    assert len(set(found.values())) == len(found)
    assert identifiers(reversed(names), prefix) == found


@examples(100)
@given(st.text(), st.integers(4, 30), st.booleans())
def test_texts_are_safe_to_show(text: str, limit: int, lines: bool) -> None:
    found = shown(text, limit, lines=lines)
    assert len(found) <= limit
    assert all(character.isprintable() or character in "\n\t" for character in found)
    assert lines or found.isprintable()


def test_secrets_are_hidden_and_never_shown() -> None:
    environment = {"TOKEN": "abcdef", "HEADER": "Bearer ghijkl", "TINY": "x"}
    secrets = Secrets(environment, environment)
    assert secrets["TOKEN"] == "abcdef"
    assert secrets.hidden("abcdef Bearer ghijkl ghijkl x") == "$TOKEN $HEADER $HEADER x"
    assert "abcdef" not in repr(secrets)
    with pytest.raises(BuildError, match="ABSENT is not set"):
        Secrets(["ABSENT"], environment)
