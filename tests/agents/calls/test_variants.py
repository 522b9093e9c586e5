"""A variant accepts what is drawn for its original, and keeps its required parameters."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from weft.agents.calls import CallTool, compose_tools
from weft.agents.calls.values import ValueSource
from weft.agents.calls.variants import vary
from weft.validation import violation

TOOLS = (
    *compose_tools(60, seed=1),
    CallTool(
        "getFossilAge",
        "Retrieve the age of a specific fossil",
        {
            "type": "object",
            "properties": {
                "fossil_name": {"type": "string", "description": "The fossil (e.g., Lucy, Sue)"},
                "dating_method": {
                    "type": "string",
                    "description": "The method (e.g., radiocarbon, luminescence, uranium)",
                },
                "depth": {"type": "number", "description": "The depth in meters"},
            },
            "required": ["fossil_name"],
        },
        "Geology",
    ),
)


@given(st.integers(0, 10**9), st.sampled_from(TOOLS))
def test_drawn_values_fit_the_shown_schema(seed: int, tool: CallTool) -> None:
    rng = random.Random(seed)
    variant = vary(tool, rng)
    source = ValueSource(TOOLS)
    given = {name: source.draw(*variant.sources[name], rng) for name in variant.tool.properties}
    assert violation(given, dict(variant.tool.parameters)) is None
    assert len(variant.tool.required) == len(tool.required)
    assert set(variant.sources) == set(variant.tool.properties)


def test_variants_differ_in_names_types_and_descriptions() -> None:
    made = [vary(TOOLS[-1], random.Random(seed)).tool for seed in range(200)]
    assert len({tool.name for tool in made}) > 8
    types = {tool.properties.get("dating_methods", {}).get("type") for tool in made}
    assert "array" in types
    assert any("enum" in tool.properties.get("dating_method", {}) for tool in made)
    assert len({tool.description for tool in made}) > 5


def test_composed_tools_are_the_same_for_a_seed() -> None:
    assert compose_tools(50, 3) == compose_tools(50, 3)
    assert compose_tools(50, 3) != compose_tools(50, 4)
    assert len({tool.name for tool in compose_tools(500, 3)}) == 500
