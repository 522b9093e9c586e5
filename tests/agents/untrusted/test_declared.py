"""Functions as tools by declarations that others wrote."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.agents.untrusted.schema import ContradictorySchema, contradictions
from weft.core.errors import BuildError, ToolArgumentError

_BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
DATA = Path(os.environ.get("WEFT_DATA") or _BESIDE)
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SAME = [
    {"type": "function", "function": {"name": "weather", "description": "W.", "parameters": PLACE}},
    {"type": "function", "name": "weather", "description": "W.", "parameters": PLACE},
    {"name": "weather", "description": "W.", "input_schema": PLACE},
    {"name": "weather", "description": "W.", "inputSchema": PLACE},
    {
        "name": "weather",
        "description": "W.",
        "parameters": {
            "type": "OBJECT",
            "properties": {"city": {"type": "STRING"}},
            "required": ["city"],
        },
    },
    {
        "name": "weather",
        "description": "W.",
        "parameters": {
            "type": "dict",
            "properties": {"city": {"type": "str"}},
            "required": ["city"],
        },
    },
    {
        "api_name": "weather",
        "api_description": "W.",
        "parameters": {"city": {"type": "str"}},
        "required": ["city"],
    },
    {
        "name": "weather",
        "description": "W.",
        "query_parameters": {"city": {"type": "string", "required": True}},
    },
]


def anything(**arguments: Any) -> Any:
    return arguments


def called(tool: weft.Tool[..., Any], **arguments: Any) -> Any:
    return asyncio.run(weft.Toolbox(tool).call(tool.spec.name, arguments))


@pytest.mark.parametrize("declared", SAME)
def test_each_spelling_is_the_same_tool(declared: Any) -> None:
    tool = weft.tool_from_schema(anything, declared, pure=True)
    assert (tool.spec.name, tool.spec.description, tool.spec.pure) == ("weather", "W.", True)
    assert tool.spec.parameters == PLACE
    assert called(tool, city="Rome") == {"city": "Rome"}
    with pytest.raises(ToolArgumentError, match='"city" is a required property'):
        called(tool)
    with pytest.raises(ToolArgumentError, match='weather: at city: 3 is not of type "string"'):
        called(tool, city=3)


def test_types_of_other_languages_are_those_of_json_schema() -> None:
    properties = {
        "a": {"type": "float"},
        "b": {"type": "tuple", "items": {"type": "any"}},
        "c": {"type": "HashMap"},
        "d": {"type": "Boolean"},
        "e": {"type": "STRING", "nullable": True},
        "f": {"type": "list", "items": {"type": "dict", "properties": {"x": {"type": "long"}}}},
        "g": {"type": "any"},
        "h": {"type": ["int", "null"], "maxLength": "3"},
        "type": {"type": "str"},
    }
    declared = {"name": "math.hypot", "parameters": {"type": "dict", "properties": properties}}
    tool = weft.tool_from_schema(anything, declared)
    assert tool.spec.name == "math_hypot"
    assert tool.spec.parameters["properties"] == {
        "a": {"type": "number"},
        "b": {"type": "array", "items": {}},
        "c": {"type": "object"},
        "d": {"type": "boolean"},
        "e": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "f": {
            "type": "array",
            "items": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
        "g": {},
        "h": {"type": ["integer", "null"], "maxLength": 3},
        "type": {"type": "string"},
    }
    given = {"a": 1, "b": [1, "x"], "e": None, "g": {"y": 1}, "type": "t"}
    assert called(tool, **given) == given


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({}, "has no name"),
        ({"functionDeclarations": [{"name": "x"}]}, "has no name"),
        ({"name": "f", "parameters": 3}, "the declaration of f: its parameters are int"),
        ({"name": "f", "parameters": {"type": "array"}}, "its parameters are array, no object"),
        (
            {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "obj"}}}},
            "the declaration of f: the parameter x has the unknown type 'obj'",
        ),
        ({"name": "f", "parameters": {"$ref": "#/nowhere"}}, "the declaration of f: .*nowhere"),
    ],
)
def test_what_is_no_declaration_is_refused(declared: Any, told: str) -> None:
    with pytest.raises(BuildError, match=told):
        weft.tool_from_schema(anything, declared)


def test_the_function_has_to_take_what_is_declared() -> None:
    def weather(city: str, unit: str) -> str:
        return f"{city} {unit}"

    with pytest.raises(BuildError, match="takes no parameter 'place'"):
        weft.tool_from_schema(weather, {"name": "w", "parameters": {"place": {"type": "str"}}})
    with pytest.raises(BuildError, match="needs 'unit', which the schema does not require"):
        weft.tool_from_schema(weather, {"name": "weather", "parameters": PLACE})
    with pytest.raises(BuildError, match="runs in this process"):
        weft.tool_from_schema(anything, SAME[0]).declared(isolation=weft.Isolation())


def test_a_contradiction_is_told_when_the_tool_is_made() -> None:
    flag = {"type": "boolean", "enum": ["yes", "no"]}
    declared = {"name": "f", "parameters": {"flags": {"type": "array", "items": flag}, "g": flag}}
    with pytest.warns(ContradictorySchema) as told:
        weft.tool_from_schema(anything, declared)
    assert [str(one.message).partition(":")[2][:22] for one in told] == [
        " no value fits flags[]",
        " no value fits g: its ",
    ]
    assert not [*contradictions({"properties": {"a": {"enum": ["x", 3], "type": "integer"}}})]


def raw_declarations() -> Iterator[dict[str, Any]]:
    for file in sorted((DATA / "planner/bfcl_v4").glob("BFCL_*.json")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield from json.loads(line)["function"]
    for name in ("sealtools-dev", "toolcatalogue"):
        for line in (
            (DATA / f"programs/{name}/tools.jsonl").read_text(encoding="utf-8").splitlines()
        ):
            yield json.loads(line)
    for file in sorted((DATA / "planner/nestful").glob("*-spec.json")):
        yield from json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of test data")
@pytest.mark.filterwarnings("ignore::weft.agents.untrusted.schema.ContradictorySchema")
def test_every_raw_declaration_of_the_data_registers() -> None:
    refused = []
    declarations = list(raw_declarations())
    for declared in declarations:
        try:
            weft.tool_from_schema(anything, declared)
        except BuildError as error:
            refused.append(str(error))
    assert len(declarations) > 5_000
    # Of one, a parameter is a text instead of a schema.
    assert [one.partition(" (")[0] for one in refused] == [
        "the declaration of createDraftingElement: a part of a schema is str"
    ]
