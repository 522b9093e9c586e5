"""Literals that each kind of schema lets a model write, and those that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planner.grammar.random_texts import Grammar
from weft.core.values import ToolSpec
from weft.planner.grammar import step_grammar
from weft.planner.text.reader import read


def takes(name: str, schema: Any) -> list[ToolSpec]:
    """A tool with one parameter."""
    return [ToolSpec("use", "", {"type": "object", "properties": {name: schema}})]


LEAVES: list[tuple[Any, list[str], list[str]]] = [
    (
        {"type": "integer", "minimum": -5, "maximum": 120},
        ["-5", "0", "120", "1.0"],
        ["-6", "121", "1.5", "007"],
    ),
    ({"type": "integer", "exclusiveMinimum": 0.5}, ["1"], ["0", "-1"]),
    ({"type": "integer", "multipleOf": 7}, ["0", "7", "70", "7.0"], ["8", "7.5"]),
    (  # with a point it is read as another number: 389467299265632704
        {"type": "integer", "multipleOf": 5},
        ["389467299265632705", "9007199254740990.0"],
        ["389467299265632705.0", "9007199254740995.0"],
    ),
    (
        {"type": "number", "minimum": 0, "maximum": 1},
        ["0", "0.25", "1", "1.0", "1e-3", "8.854e-12"],
        ["1.1", "-0.1", "1e1", "2e0"],
    ),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, ["0.01", "1", "0.5"], ["0", "0.0"]),
    (
        {"type": "number", "minimum": 0.25, "maximum": 0.75},
        ["0.25", "0.3", "0.75"],
        ["0.24", "0", "0.76"],
    ),
    (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"é漢"', '"\\\\\\"a"'],
        ['"a"', '"abcd"'],
    ),
    ({"type": "string", "pattern": "^a+$"}, ['"aa"'], ['"ab"', '""']),
    ({"type": "string", "format": "date"}, ['"2026-11-21"'], ['"tomorrow"']),
    ({"enum": ["a", 'b"', 3, None]}, ['"a"', '"b\\""', "3", "null"], ['"b"', "4"]),
    ({"type": "string", "enum": ["a", 3]}, ['"a"'], ["3"]),
    ({"type": ["boolean", "null"]}, ["true", "null"], ["1", '"true"']),
    (
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        ["1", "[1, 2]"],
        ["[true]"],
    ),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 5}]}, ["3", "5"], ["2", "6"]),
    (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
        ["[true]", "[true, false]"],
        ["[]", "[true, true, true]"],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        ['["a"]', "[]"],
        ['["a", 1]', "[1]"],
    ),
    (
        {
            "type": "object",
            "properties": {"größe": {"type": "integer"}, "b": {}},
            "required": ["größe"],
        },
        ['{"größe": 1}', '{"größe": 1, "b": [null]}'],
        ["{}", '{"b": 1}', '{"größe": "1"}'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        ["{}", '{"apple": 1, "kiwi": 2}'],
        ['{"apple": "1"}', '{"apple": 1 "kiwi": 2}'],
    ),
    (
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1},
        ['{"a": 1}', '{"b": 1}'],
        ["{}"],
    ),
]


@pytest.mark.parametrize(("schema", "held", "refused"), LEAVES)
def test_literals_by_their_schemas(schema: Any, held: list[str], refused: list[str]) -> None:
    tools = takes("x", schema)
    grammar = Grammar(step_grammar(tools, {}, 1))
    for text in held:
        assert grammar.holds(f"1. use(x={text})\n"), text
        assert len(read(f"1. use(x={text})\n2. join()", tools).steps) == 1
    for text in refused:
        assert not grammar.holds(f"1. use(x={text})\n"), text


def test_what_refers_to_itself_ends() -> None:
    node = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}},
    }
    tree = {"$ref": "#/$defs/n", "$defs": {"n": {**node, "required": ["v"]}}}
    grammar = Grammar(step_grammar(takes("t", tree), {}, 1))
    assert grammar.holds('1. use(t={"v": 1, "next": {"v": 2, "next": {"v": 3}}})\n')
    assert not grammar.holds('1. use(t={"v": 1, "next": {}})\n')
    deep = '{"v": 1, "next": ' * 15 + '{"v": 1}' + "}" * 15
    assert grammar.holds(f"1. use(t={deep})\n")
    deep = f'{{"v": 1, "next": {deep}}}'
    assert not grammar.holds(f"1. use(t={deep})\n")
