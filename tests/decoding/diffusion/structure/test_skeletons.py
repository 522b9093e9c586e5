from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evals.random_schemas import random_schema
from tests.decoding.diffusion.structure.small_vocabularies import filled, lexicon, text_of
from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.diffusion.structure.skeleton import StructureOptions
from weft.decoding.diffusion.structure.slots import OPEN
from weft.decoding.diffusion.structure.structure import Structure

WORDS = lexicon()
STRUCTURES = StructureCompiler(WORDS)
TIGHT = StructureCompiler(WORDS, StructureOptions(open_tokens=3, string_tokens=40))


def value_of(structure: Structure, schema: Any, words: TokenVocabulary = WORDS) -> Any:
    value = json.loads(text_of(structure, words))
    wrong = list(Draft202012Validator(schema).iter_errors(value))
    assert not wrong, f"{wrong[0].message} in {value}"
    return value


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 1, 5, 200]))
@example(4249, 0)
def test_whatever_is_filled_in_any_order_fits_the_schema(seed: int, spare: int) -> None:
    chance = random.Random(seed)
    schema = random_schema(chance, depth=2)
    structures = chance.choice([STRUCTURES, TIGHT])
    try:
        least = shortest(structures, schema)
    except NotASkeleton as reason:
        pytest.fail(f"{reason}: {schema}")
    structure = structures.start(room=least + spare, schema=schema)
    filled(structure, WORDS, chance)
    value_of(structure, schema)
    assert len(structure.tokens) <= least + spare


@pytest.mark.parametrize("spare", [0, 5])
def test_a_choice_goes_the_way_of_a_value_too(spare: int) -> None:
    """No word tells a number from the string: its own first digit does."""
    schema = {"anyOf": [{"const": "ab"}, {"type": "integer"}]}
    room = len(json.dumps("ab")) + spare
    found = set()
    for seed in range(30):
        structure = TIGHT.start(room=room, schema=schema)
        filled(structure, WORDS, random.Random(seed))
        found.add(type(value_of(structure, schema)))
    assert found == {str, int}


def shortest(structures: StructureCompiler, schema: Any) -> int:
    """The fewest tokens of a text: what a structure without room says."""
    with pytest.raises(ModelRequestError, match="takes") as refusal:
        structures.start(room=0, schema=schema)
    return int(str(refusal.value).partition("takes ")[2].split()[0])


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 4},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
            },
            "required": ["name", "next"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: list[Any] = [
    TREE,
    True,
    {},
    {"type": ["string", "integer", "null"]},
    {"enum": [1, 12, "a", "ab", None, [1, {"x": 2}]]},
    {"enum": ["", "a", "ab", "b"]},
    {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 0.5}]},
    {"anyOf": [{"const": "auto"}, {"type": "string", "maxLength": 3}, {"enum": [5, 55]}]},
    {"anyOf": [{"type": "string", "pattern": "^a+$"}, {"type": "string", "format": "date"}]},
    {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 3},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
    {"type": "object"},
    {"type": "array"},
    {"type": "array", "prefixItems": [{"type": "null"}, {"const": 2}], "items": False},
    {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "boolean"}},
    {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "maxItems": 10_000},
    {"type": "integer", "minimum": -3, "maximum": 25, "multipleOf": 7},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "object", "properties": {"user_id": {}, "user_name": {}, "user": {}}},
    {
        "type": "object",
        "properties": {n: {"type": "boolean"} for n in ("a", "b", "c", "d", "e")},
        "required": ["c"],
    },
    {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}},
                "required": ["kind", "x"],
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "b"}, "x": {"type": "string"}},
                "required": ["kind"],
            },
            {"type": "null"},
        ]
    },
    {
        "anyOf": [
            {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
            for kind in ("integer", "string", "boolean", "array")
        ]
    },
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 3, "maximum": 4}, "b": {"type": "null"}}},
        ],
        "required": ["b"],
    },
    {"type": "object", "properties": {"\ud800": {"const": "\udfff"}, '"\n': {}}},
]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
@pytest.mark.parametrize("seed", range(3))
def test_schemas_of_all_kinds_are_filled(number: int, seed: int) -> None:
    schema = SCHEMAS[number]
    structure = [STRUCTURES, TIGHT][seed % 2].start(room=30 + 25 * seed, schema=schema)
    assert structure.kind == "skeleton", structure.reason
    filled(structure, WORDS, random.Random(seed))
    value_of(structure, schema)


def test_everything_that_is_text_costs_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": "x"}}}
    schema["required"] = ["a", "b"]
    structure = STRUCTURES.start(room=50, schema=schema)
    assert structure.over
    assert all(structure.literal)
    assert value_of(structure, schema) == {"a": 1, "b": "x"}


def test_values_of_required_properties_are_open_at_once() -> None:
    names = [f"key{n}" for n in range(6)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in names},
        "required": names,
    }
    structure = STRUCTURES.start(room=200, schema=schema)
    assert structure.tokens.count(OPEN) == 6
    assert structure.tokens[-1] != OPEN
    slots = [slot for slot, token in enumerate(structure.tokens) if token == OPEN]
    structure.write(slots, [WORDS.spell("true")[0]] * 6)
    assert structure.over
    assert value_of(structure, schema) == dict.fromkeys(names, True)


def test_a_string_that_ends_gives_its_slots_back_and_one_that_is_full_gets_more() -> None:
    structure = STRUCTURES.start(room=200, schema={"type": "string"})
    letters = WORDS.spell("x")
    assert structure.tokens.count(OPEN) == StructureOptions().open_tokens
    structure.write([3], WORDS.spell('"'))
    assert structure.tokens.count(OPEN) == 2
    structure.write([1, 2], letters * 2)
    assert text_of(structure, WORDS) == '"xx"'
    longer = STRUCTURES.start(room=200, schema={"type": "string"})
    longer.write(list(range(1, 9)), letters * 8)
    assert longer.tokens.count(OPEN) == StructureOptions().open_tokens
    longer.write([9], WORDS.spell('"'))
    assert value_of(longer, {"type": "string"}) == "x" * 8


def test_optional_properties_are_each_a_choice() -> None:
    schema = SCHEMAS[19]
    seen = set()
    for seed in range(60):
        structure = STRUCTURES.start(room=200, schema=schema)
        filled(structure, WORDS, random.Random(seed))
        seen.add(tuple(value_of(structure, schema)))
    assert {name for names in seen for name in names} == set("abcde")
    assert len(seen) > 8


def test_two_choices_never_claim_the_same_room() -> None:
    schema = {
        "type": "array",
        "prefixItems": [{"enum": ["a" * 20, "b"]}, {"enum": ["a" * 20, "b"]}],
        "minItems": 2,
        "items": False,
    }
    least = shortest(STRUCTURES, schema)
    structure = STRUCTURES.start(room=least + 25, schema=schema)
    slots = [slot for slot, token in enumerate(structure.tokens) if token == OPEN]
    long = WORDS.spell("a")[0]
    assert structure.admitted(slots, [long, long]) == [True, False]
    structure.write(slots[:1], [long])
    assert value_of(structure, schema) == ["a" * 20, "b"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"not": {"type": "null"}}, "'not'"),
        ({"type": "array", "uniqueItems": True}, "'uniqueItems'"),
        ({"type": "string", "pattern": "(?=x)"}, "pattern"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"$ref": "#"}, "itself"),
        ({"$ref": "https://example.org/schema"}, "out of the schema"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "bounds"),
        (False, "nothing"),
        (
            {
                "type": "object",
                "properties": {"self": {"$ref": "#"}},
                "required": ["self"],
            },
            "deeper",
        ),
    ],
)
def test_what_cannot_be_laid_out_says_why(schema: Any, reason: str) -> None:
    with pytest.raises(NotASkeleton, match=reason):
        STRUCTURES.start(room=100, schema=schema)


def test_what_is_never_written_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    assert STRUCTURES.start(room=50, schema=schema).narrowed == (
        "properties that are not declared",
    )
    assert STRUCTURES.start(room=50, schema={"type": "null"}).narrowed == ()


def test_a_text_that_cannot_be_short_enough_is_refused() -> None:
    with pytest.raises(ModelRequestError, match="takes 10 tokens, and 9 are allowed"):
        STRUCTURES.start(room=9, schema={"type": "string", "minLength": 40})
