"""Schemas and values of strangers: one validator, bounded in work and in time."""

from __future__ import annotations

import asyncio
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.profile import examples
from weft.core.errors import MachineBusy
from weft.validation import (
    SchemaRefused,
    TooMuchToCheck,
    compile_schema,
    misfit,
    misfit_async,
    process,
)
from weft.validation.process import check_apart, check_apart_async


def doubling(levels: int) -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{levels}": {}}}


def nested(levels: int, leaf: object = None) -> Any:
    value = {} if leaf is None else leaf
    for _ in range(levels):
        value = {"a": value}
    return value


def chain(length: int) -> dict[str, Any]:
    parts: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{length}": {}}}


BRANCHES: dict[str, Any] = {
    "type": "object",
    "properties": {"b": {"type": "string"}},
    "anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}],
}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (doubling(60), "expands to over"),
        (chain(3_000), "follow one another too deeply"),
        ({"$ref": "#"}, "without end"),
        ({"anyOf": [{"$ref": "#"}, {}]}, "without end"),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#"}}}, "without end"),
        ({"if": {}, "then": {"allOf": [{"$ref": "#"}]}}, "without end"),
        ({"items": {"$ref": "#/items"}}, "without end"),
        ({"dependentSchemas": {"a": {"$ref": "#"}}}, "without end"),
        ({"$ref": "https://example.org/s"}, "leads nowhere"),
        ({"$dynamicRef": "#a"}, "not supported"),
        ({"properties": {"a": {"$id": "https://example.org/"}}}, "not supported"),
        ({"type": "obj"}, 'at type: "obj" is not one of'),
        ({"type": 3.5}, "not a JSON Schema"),
        ({"pattern": "^(?!x)"}, "linear time"),
        ({"pattern": r"(a)\1"}, "linear time"),
        ({"patternProperties": {"(?<=a)b": {}}}, "linear time"),
        ({"pattern": "(("}, "no regular expression"),
        ({"pattern": "((a{1,90}){1,90}){1,90}"}, "too large"),
        ({"allOf": [{"pattern": f"a{i}"} for i in range(101)]}, "more than 100 patterns"),
        ({"enum": [*range(20_000)]}, "more than 10,000 parts"),
        ({"enum": [b"x"]}, "JSON has no bytes"),
        ("string", "must be an object"),
    ],
)
def test_schemas_that_are_refused(schema: object, why: str) -> None:
    with pytest.raises(SchemaRefused, match=why):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}},
        {"anyOf": [{"type": "null"}, {"prefixItems": [{"$ref": "#"}]}]},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"additionalProperties": {"type": "object"}}}},
        {"$id": "https://example.org/s", "properties": {"$ref": {"type": "string"}}},
        {"enum": [{"$ref": "x"}, {"a": {"a": {"a": None}}}]},
        doubling(8),
        True,
    ],
)
def test_schemas_that_are_fine(schema: Any) -> None:
    assert misfit({"a": {"a": {"a": None}}}, schema) is None


def test_patterns_take_linear_time() -> None:
    assert misfit("a" * 40 + "!", {"pattern": "^(a+)+$"}) is not None
    assert misfit("a" * 40, {"pattern": "^(a+)+$"}) is None


def test_what_is_wrong_is_said_with_its_place() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}
    assert misfit({"a": [1, "x"]}, schema) == 'at a[1]: "x" is not of type "integer"'
    assert misfit({"a": [1]}, schema) is None
    assert misfit(3, False) is not None


def test_of_a_union_the_branch_that_came_furthest_counts() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert misfit("x", either) == '"x" is not of types "integer", "null"'
    deep = {"oneOf": [{"type": "string"}, {"properties": {"b": {"type": "integer"}}}]}
    assert misfit({"b": "x"}, deep) == 'at b: "x" is not of type "integer"'
    assert misfit("ab", {"anyOf": [{"type": "null"}, {"maxLength": 1}]}) is not None


def test_values_of_other_classes_are_checked_as_json() -> None:
    assert misfit((1, 2), {"type": "array"}) is None
    assert misfit(MappingProxyType({"a": (1,)}), {"required": ["a"]}) is None
    assert misfit("\ud800", {"type": "string"}) is None
    assert misfit({1: 2}, {"type": "object"}) == "the keys of an object are texts"
    assert misfit(b"x", {}) == "JSON has no bytes"


def test_values_that_are_nested_too_deeply() -> None:
    once = {"properties": {"a": {"$ref": "#"}}}
    assert misfit(nested(150), once) is None
    for levels in (250, 100_000):
        with pytest.raises(TooMuchToCheck, match="nested too deeply"):
            misfit(nested(levels), once)


@pytest.mark.parametrize(
    ("schema", "fitting", "other"),
    [
        ({"items": {"type": "integer"}}, [1] * 30_000, [*[1] * 30_000, "x"]),
        (BRANCHES, nested(9), nested(9, {"b": 1})),
        ({"pattern": "[ab]*a[ab]{1499}c$"}, "ab" * 1_000 + "c", "ab" * 1_000),
    ],
)
def test_large_checks_run_apart_and_say_the_same(schema: Any, fitting: Any, other: Any) -> None:
    assert misfit(fitting, schema) is None
    assert asyncio.run(misfit_async(fitting, schema)) is None
    told = misfit(other, schema)
    assert told is not None
    assert "is not" in told or "does not match" in told
    assert asyncio.run(misfit_async(other, schema)) == told


def test_a_check_is_ended_at_its_time_limit() -> None:
    """2^40 errors cannot be collected; whether the value fits is known before."""
    endless = nested(40, {"b": 1})
    assert "too large to say where" in str(check_apart(BRANCHES, endless, 1.0))
    assert "too large to say where" in str(asyncio.run(check_apart_async(BRANCHES, endless, 1.0)))
    with pytest.raises(TooMuchToCheck):
        check_apart(doubling(30), 1, 0.0)
    with pytest.raises(TooMuchToCheck):
        asyncio.run(check_apart_async(doubling(30), 1, 0.0))


def test_a_check_that_gets_no_processor_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is not run, as on a busy machine: stopped before it has begun."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    monkeypatch.setattr(process, "_COMMAND", (sys.executable, "-c", code))
    with pytest.raises(MachineBusy):
        check_apart({}, 1, wait_s=0.2)
    with pytest.raises(MachineBusy):
        asyncio.run(check_apart_async({}, 1, wait_s=0.2))


async def _cancelled_check() -> int:
    before = len(asyncio.all_tasks())
    task = asyncio.create_task(misfit_async(nested(40, {"b": 1}), BRANCHES))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    return len(asyncio.all_tasks()) - before


def test_cancelling_who_waits_ends_the_check() -> None:
    assert asyncio.run(_cancelled_check()) == 0


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
schemas = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "object"])})
    | st.fixed_dictionaries({"pattern": st.sampled_from(["^a", "[0-9]+$", "(a|b)*"])}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "required": st.lists(st.sampled_from("ab"), unique=True),
        },
    ),
    max_leaves=8,
)


@examples(200)
@given(schemas, json)
def test_it_decides_as_the_reference_implementation(schema: Any, value: object) -> None:
    assert (misfit(value, schema) is None) == Draft202012Validator(schema).is_valid(value)
