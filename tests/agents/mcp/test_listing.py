"""Listings of tools: names, schemas, and what becomes of those that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.profile import examples
from weft.agents.mcp.listing import ServerTool, ToolListing
from weft.agents.untrusted.schema import ContradictorySchema
from weft.core.ids import is_name

NUMBER = {"type": "integer"}


def tool(name: object, **more: object) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def listed(*raw: object, prefix: str = "", only: tuple[str, ...] = ()) -> dict[str, ServerTool]:
    listing = ToolListing(100)
    listing.vet({"tools": list(raw)})
    return listing.tools(prefix, only)


def test_names_are_identifiers_and_none_depends_on_the_order() -> None:
    raw = [tool("read-file"), tool("read_file"), tool("read.file")]
    names = {found.name: here for here, found in listed(*raw).items()}
    assert names["read_file"] == "read_file"
    assert names["read-file"] != names["read.file"]
    assert {found.name: here for here, found in listed(*reversed(raw)).items()} == names


def test_a_prefix_and_a_choice() -> None:
    raw = [tool("read-file"), tool("write"), tool("list")]
    assert list(listed(*raw, prefix="files_")) == ["files_read_file", "files_write", "files_list"]
    for name in ("read-file", "read_file"):
        assert list(listed(*raw, prefix="files_", only=(name,))) == ["files_read_file"]


def test_listed_parameters_are_all_there_are() -> None:
    closed = {"type": "object", "properties": {"a": NUMBER}}
    free = {"type": "object", "properties": {"a": NUMBER}, "additionalProperties": NUMBER}
    tools = listed(
        tool("closed", inputSchema=closed), tool("free", inputSchema=free), tool("anything")
    )
    assert tools["closed"].spec.parameters["additionalProperties"] is False
    assert tools["free"].spec.parameters["additionalProperties"] == NUMBER
    assert "additionalProperties" not in tools["anything"].spec.parameters


def test_a_lone_result_is_unwrapped() -> None:
    reference = {"$ref": "#/$defs/n"}
    output = {
        "type": "object",
        "properties": {"result": reference},
        "required": ["result"],
        "$defs": {"n": NUMBER},
    }
    wrapped, plain = listed(
        tool("wrapped", outputSchema=output),
        tool("plain", outputSchema={"type": "object", "properties": {"result": NUMBER}}),
    ).values()
    assert wrapped.wrapped
    assert wrapped.spec.result == {**reference, "$defs": {"n": NUMBER}}
    assert not plain.wrapped
    assert plain.spec.result == plain.output


def test_only_a_clear_yes_makes_a_tool_repeatable() -> None:
    hints: list[Any] = [{"readOnlyHint": True}, {"idempotentHint": True}]
    hints += [{"readOnlyHint": "yes"}, {"destructiveHint": False}, None, [], 1]
    raw = [tool(f"t{number}", annotations=hint) for number, hint in enumerate(hints)]
    found = listed(*raw).values()
    assert [each.spec.repeatable for each in found] == [True] * 2 + [False] * 5
    assert [each.spec.effect for each in found] == ["pure", "idempotent"] + ["unknown"] * 5
    assert not any(each.spec.pure for each in found)


def test_a_workflow_knows_effects_better_than_a_server() -> None:
    hint = {"annotations": {"idempotentHint": True}}
    listing = ToolListing(100)
    listing.vet({"tools": [tool("read-file", **hint), tool("pay", **hint), tool("list")]})
    found = listing.tools("bank_", (), {"pay": "once", "read_file": "pure"})
    assert [each.spec.effect for each in found.values()] == ["pure", "once", "unknown"]
    assert [each.spec.repeatable for each in found.values()] == [True, False, False]
    found = listing.tools("bank_", (), {"": "once", "list": "pure"})
    assert [each.spec.effect for each in found.values()] == ["once", "once", "pure"]


def test_too_many_tools() -> None:
    listing = ToolListing(3)
    for page in range(3):
        listing.vet({"tools": [tool(f"t{page}{number}") for number in range(2)]})
    assert len(listing.tools("", ())) == 3
    assert "more than 3 tools" in listing.refused.values()


def test_the_sdk_sees_nothing_to_check_results_with() -> None:
    page: dict[str, Any] = {"tools": [tool("a", outputSchema=NUMBER, icons=7), "junk"]}
    ToolListing(9).vet(page)
    assert page == {"tools": [tool("a")]}


words = st.sampled_from(
    [
        *("type", "properties", "items", "$ref", "anyOf", "oneOf", "not", "enum", "required", "x"),
        *("pattern", "patternProperties", "additionalProperties", "$defs", "description", "object"),
    ]
)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
schemas = st.dictionaries(words, json, max_size=4).map(lambda found: {"type": "object", **found})
tools = st.fixed_dictionaries(
    {"name": st.text(max_size=5) | json, "inputSchema": schemas | json},
    optional={"outputSchema": schemas | json, "description": json, "annotations": json},
)


@examples(300)
@given(st.lists(tools | json, max_size=5))
def test_whatever_is_listed_only_sound_tools_come_out(raw: list[Any]) -> None:
    listing = ToolListing(100)
    listing.vet({"tools": raw})
    for here, found in listing.tools("p_", ()).items():
        assert is_name(here)
        assert here == found.spec.name
        assert here.startswith("p_")
        assert found.spec.parameters["type"] == "object"
        Draft202012Validator.check_schema(dict(found.spec.parameters))
        assert isinstance(found.spec.description, str)


def test_a_parameter_that_no_value_fits_is_told() -> None:
    flag = {"type": "boolean", "enum": ["yes", "no"]}
    with pytest.warns(ContradictorySchema, match="tool f: no value fits flag: its type"):
        listed(tool("f", inputSchema={"type": "object", "properties": {"flag": flag}}))
