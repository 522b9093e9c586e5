"""Every generated item passes the gates again; planted defects are refused for their reason."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden_files import assert_golden
from weft.agents.calls import (
    STYLES,
    CallItem,
    CallTool,
    GenerateOptions,
    GoldCall,
    check_item,
    execution,
    generate,
    read_tools,
    split,
)
from weft.agents.tools import Toolbox
from weft.agents.tools import tool as make_tool
from weft.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "agents" / "generated_calls.txt"


def tool(name: str, description: str, **types: str) -> CallTool:
    properties = {key: {"type": kind} for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    return CallTool(name, description, schema, field="any")


TOOLS = (
    *(
        tool(
            f"{verb}{thing.title()}",
            f"{verb} the {thing} of a station",
            city="string",
            days="integer",
        )
        for verb in ("measure", "predict", "archive", "compare")
        for thing in ("rainfall", "temperature", "pollution", "humidity")
    ),
    tool("createStation", "Create a station", city="string"),
    tool("registerSensor", "Register a sensor", station_id="string", kind="string"),
    tool("calibrateSensor", "Calibrate a sensor", sensor_id="string", offset="number"),
)


def accepted(seed: int, n: int = 12) -> list[CallItem]:
    return [one for one, why in generate(TOOLS, GenerateOptions(n, seed=seed)) if why is None]


@given(st.integers(0, 10_000))
def test_items_pass_all_gates_again_and_are_the_same_for_a_seed(seed: int) -> None:
    items = accepted(seed)
    assert len(items) == 12
    assert [check_item(one) for one in items] == [None] * 12
    assert [one.document() for one in items] == [one.document() for one in accepted(seed)]


def test_queries_are_those_of_the_golden_file() -> None:
    lines = []
    for item in accepted(7, 60):
        calls = "; ".join(f"{c.name} {json.dumps(dict(c.arguments))}" for c in item.calls)
        lines.append(f"[{item.style}] {item.query}\n    {calls or list(item.ask)}")
    assert_golden(GOLDEN, "\n".join(lines) + "\n")


def test_all_styles_are_made() -> None:
    assert {one.style for one in accepted(1, 60)} == set(STYLES)


@given(st.integers(0, 1000), st.floats(0, 1))
def test_splits_share_no_tool(seed: int, share: float) -> None:
    train, test = split(TOOLS, share, seed)
    assert not {one.name for one in train} & {one.name for one in test}
    assert len(train) + len(test) == len(TOOLS)


RAIN = tool("measureRainfall", "Measure the rainfall of a station", city="string", days="integer")
GOOD = CallItem(
    "Measure the rainfall of a station, city Oslo, days 4.",
    (RAIN,),
    (GoldCall("measureRainfall", {"city": "Oslo", "days": 4}),),
    "simple",
    "it fits",
)


def called(**arguments: object) -> tuple[GoldCall, ...]:
    return (GoldCall("measureRainfall", arguments),)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"calls": (GoldCall("other", {}),)}, "unknown_tool"),
        ({"calls": called(city="Oslo")}, "misfit"),
        ({"calls": called(city="Oslo", days="4")}, "misfit"),
        ({"calls": called(city="Oslo", days=4, hour=1)}, "misfit"),
        ({"calls": called(city="Rome", days=4)}, "literal_absent"),
        ({"query": "Measure the rainfall in Oslo, year 4, days 9."}, "value_exchanged"),
        ({"query": "Sing: Oslo, 4."}, "intent_absent"),
        ({"query": GOOD.query + " Also 77."}, "value_unused"),
        ({"style": "parallel"}, "answer_of_style"),
        ({"ask": ("days",)}, "wrong_ask"),
        ({"style": "irrelevance", "calls": ()}, "tool_fits"),
        ({"style": "missing", "calls": (), "ask": ("days",), "query": "days: 4"}, "value_given"),
    ],
)
def test_planted_defects_are_refused(change: dict[str, object], reason: str) -> None:
    assert check_item(GOOD) is None
    refusal = check_item(dataclasses.replace(GOOD, **change))  # type: ignore[arg-type]
    assert refusal is not None
    assert refusal.reason == reason


def test_a_tool_that_runs_and_fails_refuses_the_item() -> None:
    @make_tool(name="measureRainfall")
    def fails(city: str, days: int) -> int:
        raise LookupError(city, days)

    refusal = asyncio.run(execution(GOOD, Toolbox(fails)))
    assert refusal is not None
    assert (refusal.gate, refusal.reason) == ("execution", "tool_failed")


def test_too_few_tools_for_the_number_of_items_is_an_error() -> None:
    with pytest.raises(InputError, match="of 500 items"):
        list(generate(TOOLS[:2], GenerateOptions(500, {"simple": 1})))


def test_tools_are_read_from_json_lines(tmp_path: Path) -> None:
    row = {"name": "web.search", "description": "Search", "parameters": {"q": {"type": "str"}}}
    file = tmp_path / "tools.jsonl"
    file.write_text(json.dumps(row | {"required": ["q"]}) + "\n", "utf-8")
    (read,) = read_tools(file)
    assert (read.name, read.required) == ("web_search", ("q",))
    assert read.properties["q"]["type"] == "string"
