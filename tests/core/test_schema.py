"""`mismatch` raises no false alarm and finds the mismatches people make; `at` follows paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from weft.core.schema import array_of, at, declared, mismatch, references

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
NULL = {"type": "null"}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def record(
    _required: list[str] | None = None, _open: bool = False, **fields: Any
) -> dict[str, Any]:
    names = list(fields) if _required is None else _required
    more = {} if _open else {"additionalProperties": False}
    return {"type": "object", "properties": fields, "required": names, **more}


DOC = record(title=STRING, score=NUMBER)
TREE = {
    "$ref": "#/$defs/Tree",
    "$defs": {"Tree": record(value=INTEGER, left={"anyOf": [{"$ref": "#/$defs/Tree"}, NULL]})},
}
WORDS = {
    "$ref": "#/$defs/Tree",
    "$defs": {"Tree": record(value=STRING, left={"anyOf": [{"$ref": "#/$defs/Tree"}, NULL]})},
}


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        (STRING, INTEGER, "string can never be integer"),
        (NUMBER, {"type": ["string", "null"]}, "number can never be null or string"),
        ({"type": "boolean"}, INTEGER, "boolean can never be integer"),
        ({"const": 1}, STRING, "integer can never be string"),
        ({"enum": ["a", "b"]}, {"enum": ["c"]}, "'a' or 'b' is never 'c'"),
        ({"const": 0.5}, INTEGER, "number can never be integer"),
        (array(INTEGER), INTEGER, "array can never be integer"),
        (array(INTEGER), array(STRING), "[]: integer can never be string"),
        (array(array(INTEGER)), array(array(STRING)), "[][]: integer can never be string"),
        (array(DOC), array(record(titel=STRING, _open=True)), "it has 'title': is one of them"),
        (DOC, record(title=STRING), "the property 'score' is not allowed; there are: title"),
        (DOC, record(_open=True, title=INTEGER), "title: string can never be integer"),
        (record(d=array(DOC)), record(d=array(record(score=NULL, _open=True))), "d[].score: "),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"type": "object", "additionalProperties": STRING},
            "*: integer can never be string",
        ),
        (
            {"anyOf": [STRING, NULL]},
            INTEGER,
            "string can never be integer and null can never be integer",
        ),
        (STRING, {"oneOf": [INTEGER, NULL]}, "string can never be integer"),
        ({"allOf": [{}, STRING]}, INTEGER, "string can never be integer"),
        (
            array({}, prefixItems=[STRING, STRING], minItems=2),
            array({}, prefixItems=[STRING, INTEGER], minItems=2),
            "[1]: string can never be integer",
        ),
        (TREE, WORDS, "value: integer can never be string"),
        (array(TREE["$defs"]["Tree"]), array(NULL), "[]: object can never be null"),
        (STRING, {"allOf": [{"enum": [1, 2]}]}, "string can never be integer"),
        ({"const": 0}, {"minimum": 1}, "0 is less than 1"),
        ({"enum": [3, 4.5]}, {"maximum": 2}, "3 is more than 2 and 4.5 is more than 2"),
        ({"exclusiveMinimum": 1}, {"const": 1}, "1 is not more than 1"),
        ({"const": 2}, {"exclusiveMaximum": 2}, "2 is not less than 2"),
        ({"const": ""}, {"minLength": 1}, "0 characters are fewer than 1"),
        ({"const": "abc"}, {"type": "string", "maxLength": 2}, "3 characters are more than 2"),
        ({"const": []}, array(STRING, minItems=1), "0 items are fewer than 1"),
        ({"const": {"a": 1}}, {"maxProperties": 0}, "1 properties are more than 0"),
        (record(a={"const": 5}), record(a={"maximum": 3}), "a: 5 is more than 3"),
    ],
)
def test_a_mismatch_is_found_and_said_in_words(source: Any, target: Any, why: str) -> None:
    assert why in (mismatch(source, target) or "")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (None, STRING),
        (STRING, None),
        ({}, STRING),
        (INTEGER, NUMBER),
        (NUMBER, INTEGER),
        ({"const": 1.0}, INTEGER),
        ({"enum": [1, "a"]}, STRING),
        ({"anyOf": [STRING, NULL]}, STRING),
        ({"type": ["string", "null"]}, STRING),
        (record(_open=True, title=STRING), record(_open=True, body=STRING)),
        (record([], title=STRING), record([], title=INTEGER)),
        (array(INTEGER, maxItems=0), array(STRING)),
        ({"type": "array", "items": False}, array(STRING)),
        (record(), {"type": "object", "additionalProperties": STRING}),
        (array({}, prefixItems=[STRING]), array({}, prefixItems=[INTEGER])),
        ({"$ref": "other.json#/x"}, STRING),
        ({"$ref": "#/$defs/missing"}, STRING),
        ({"type": "text"}, INTEGER),
        ({"type": 7, "properties": 3, "required": True, "enum": 5, "anyOf": {}}, INTEGER),
        (TREE, TREE),
        (
            {"type": "object", "patternProperties": {"^t": {}}, "additionalProperties": False},
            record(title=INTEGER),
        ),
        ({"$ref": "#"}, {"$ref": "#"}),
        ({"enum": [0, 5]}, {"minimum": 1}),
        ({"enum": [0, "a"]}, {"minimum": 1}),
        ({"const": True}, {"minimum": 2}),
        ({"const": 5}, {"exclusiveMinimum": True, "maximum": "3"}),
    ],
)
def test_what_may_fit_is_no_mismatch(source: Any, target: Any) -> None:
    assert mismatch(source, target) is None


def test_absurd_schemas_end() -> None:
    nested: dict[str, Any] = STRING
    for _ in range(5_000):
        nested = array(nested)
    assert mismatch(nested, nested | {"title": "other"}) is None
    assert at(nested, [0] * 10) is None
    assert mismatch(array(STRING, minItems=10**12), array({}, minItems=10**12)) is None
    wide = {"anyOf": [{"allOf": [{"anyOf": [INTEGER, STRING]}] * 30}] * 30}
    assert mismatch(wide, wide | {"title": "other"}) is None


NAMES = st.sampled_from(["a", "b"])
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=2)
    size = st.integers(0, 2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": some,
            "minItems": size,
            "maxItems": size,
            "minimum": size,
            "exclusiveMaximum": size,
            "minLength": size,
            "maxLength": size,
            "minProperties": size,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
        },
    )


LEAVES = st.one_of(
    st.booleans(),
    TYPES.map(lambda name: {"type": name}),
    VALUES.map(lambda value: {"const": value}),
    st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values}),
)
PLAIN = st.recursive(LEAVES, _keywords, max_leaves=6)
REFERRING = st.recursive(LEAVES | st.just({"$ref": "#/$defs/D"}), _keywords, max_leaves=6).filter(
    lambda schema: isinstance(schema, dict)
)
SCHEMAS = st.builds(lambda schema, d: {**schema, "$defs": {"D": d}}, REFERRING, PLAIN)


def _hollow(value: Any) -> bool:
    """Whether an empty list or object, which fits whatever its items should be, is in `value`."""
    if isinstance(value, dict):
        return not value or any(_hollow(item) for item in value.values())
    return isinstance(value, list) and (not value or any(_hollow(item) for item in value))


def _fits(value: Any, schema: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@settings(max_examples=250, deadline=None)
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=5, max_size=20))
def test_no_value_fits_two_schemas_that_mismatch(a: Any, b: Any, values: list[Any]) -> None:
    if mismatch(a, b) is not None:
        both = [v for v in values if not _hollow(v) and _fits(v, a) and _fits(v, b)]
        assert both == []


@settings(max_examples=150, deadline=None)
@given(VALUES, st.data())
def test_schemas_that_share_a_value_never_mismatch(value: Any, data: st.DataObject) -> None:
    assume(not _hollow(value))
    fitting = PLAIN.filter(lambda schema: isinstance(schema, dict) and _fits(value, schema))
    assert mismatch(data.draw(fitting), data.draw(fitting)) is None


EVERYDAY = st.recursive(
    st.sampled_from([INTEGER, NUMBER, STRING, NULL, {"enum": ["x", "y"]}, {"type": "boolean"}]),
    lambda inner: st.one_of(
        inner.map(array),
        st.lists(inner, min_size=1, max_size=2).map(lambda group: {"anyOf": group}),
        st.dictionaries(NAMES, inner, min_size=1).map(lambda fields: record(**fields)),
    ),
    max_leaves=4,
)
OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(0, 1),
    "number": st.sampled_from([0, 1.0, 0.5]),
    "string": st.sampled_from(["x", "y", "z"]),
    "null": st.none(),
    "boolean": st.booleans(),
}


def _of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of an everyday schema, without empty lists."""
    match schema:
        case {"anyOf": group}:
            return st.one_of([_of(part) for part in group])
        case {"enum": values}:
            return st.sampled_from(values)
        case {"items": items}:
            return st.lists(_of(items), min_size=1, max_size=2)
        case {"properties": fields}:
            return st.fixed_dictionaries({name: _of(part) for name, part in fields.items()})
        case _:
            return OF_TYPE[schema["type"]]


@settings(max_examples=300, deadline=None)
@given(EVERYDAY, EVERYDAY, st.data())
def test_a_value_of_the_source_never_fits_a_mismatched_target(
    source: Any, target: Any, data: st.DataObject
) -> None:
    value = data.draw(_of(source))
    assert _fits(value, source)
    if _fits(value, target):
        assert mismatch(source, target) is None
        assert mismatch(target, source) is None


@pytest.mark.parametrize(
    ("schema", "path", "found"),
    [
        (DOC, [], DOC),
        (DOC, ["title"], STRING),
        (array(DOC), [3, "score"], NUMBER),
        (array(DOC), [-1], DOC),
        (record(docs=array(DOC)), ["docs", 0, "title"], STRING),
        ({"anyOf": [DOC, NULL]}, ["title"], STRING),
        ({"anyOf": [DOC, record(title=NULL)]}, ["title"], {"anyOf": [STRING, NULL]}),
        ({"allOf": [record(_open=True, a=STRING), {"type": "object"}]}, ["a"], STRING),
        ({"type": "object", "additionalProperties": INTEGER}, ["any"], INTEGER),
        ({"type": "array", "prefixItems": [STRING, INTEGER], "items": NULL}, [1], INTEGER),
        ({"type": "array", "prefixItems": [STRING, INTEGER], "items": NULL}, [2], NULL),
        (record(_open=True, a=STRING), ["b"], None),
        ({"anyOf": [DOC, {}]}, ["title"], None),
        ({"type": "array", "prefixItems": [STRING]}, [-1], None),
        ({"properties": {"a": {"$ref": "#"}}}, ["a"], None),
        ({"$ref": "elsewhere"}, ["a"], None),
        ({}, ["a", 0, "b"], None),
        (None, ["a"], None),
    ],
)
def test_at_finds_the_schema_of_a_path(schema: Any, path: list[str | int], found: Any) -> None:
    assert at(schema, path) == found


def test_what_at_finds_stands_alone() -> None:
    left = at(TREE, ["left", "left"])
    assert left is not None
    assert at(left, ["value"]) == INTEGER
    assert mismatch(left, STRING) == "object can never be string and null can never be string"


@pytest.mark.parametrize(
    ("schema", "path", "says"),
    [
        (DOC, ["titel"], "the value has no property 'titel'; did you mean 'title'?"),
        (
            record(docs=array(DOC)),
            ["docs", 1, "x"],
            "docs[1] has no property 'x'; there are: title",
        ),
        (STRING, ["a"], "the value is string and has no property 'a'"),
        (DOC, [0], "the value is object and has no item 0"),
        ({"type": "array", "maxItems": 2}, [2], "has no item 2"),
        ({"anyOf": [STRING, NULL]}, ["a"], "has no property 'a'"),
        ({"allOf": [DOC, {}]}, ["b"], "has no property 'b'"),
        (TREE, ["left", "right"], "left has no property 'right'"),
        ({"properties": {"a": False}}, ["a"], "has no property 'a'"),
    ],
)
def test_at_refuses_a_path_that_cannot_exist(schema: Any, path: list[str | int], says: str) -> None:
    with pytest.raises(LookupError) as caught:
        at(schema, path)
    assert says in str(caught.value)


def test_a_list_of_a_schema_keeps_what_it_refers_to() -> None:
    trees = array_of(TREE)
    assert at(trees, [5, "left", "left"]) == at(TREE, ["left", "left"])
    assert array_of(array_of(TREE))["items"]["items"] == {"$ref": "#/$defs/Tree"}
    assert array_of(DOC) == array(DOC)
    assert list(references(trees)) == ["#/$defs/Tree", "#/$defs/Tree"]


def test_a_list_of_what_cannot_be_moved_is_a_list_of_anything() -> None:
    nested: dict[str, Any] = STRING
    for _ in range(5_000):
        nested = array(nested)
    for schema in (None, {"properties": {"a": {"$ref": "#"}}}, {"$ref": "elsewhere"}, nested):
        assert array_of(schema) == {"type": "array"}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (DOC, ("title", "score")),
        (TREE, ("value", "left")),
        (record(_open=True, a=STRING), ("a",)),
        ({"allOf": [record(a=STRING), {"type": "object"}, record(b=STRING)]}, ("a", "b")),
        ({"anyOf": [DOC, NULL]}, ("title", "score")),
        ({"anyOf": [DOC, {"type": "object"}]}, None),
        ({**DOC, "additionalProperties": True}, None),
        ({**DOC, "patternProperties": {}}, None),
        ({"type": "object"}, None),
        ({"properties": {}}, None),
        (STRING, ()),
        ({}, None),
        (None, None),
        ({"$ref": "#"}, None),
    ],
)
def test_declared_names_are_those_that_a_schema_speaks_of(schema: Any, names: Any) -> None:
    assert declared(schema) == names
