"""Items of call data as turns: what a training reads is what `weft ask` sends and reads."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.planning.skills.case import plain
from weft.agents.calls.lookups import lookup_items
from weft.agents.calls.turns import PlannerTurn, read_turns, split_turns, turns_of
from weft.core.errors import InputError
from weft.core.values import ToolSpec
from weft.planner.compact import COMPACT, compact_messages, missing_parameters, planning_messages
from weft.planner.plan import Ref
from weft.planner.prompt import plan_messages
from weft.planner.text.reader import read

NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=12).filter(lambda n: n != "join")
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
KINDS = {"string": TEXTS, "integer": st.integers(-(10**6), 10**6), "boolean": st.booleans(),
         "number": st.floats(-1e6, 1e6, allow_nan=False)}  # fmt: skip


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    tools, calls = [], []
    for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True)):
        kinds = draw(st.dictionaries(NAMES, st.sampled_from(sorted(KINDS)), max_size=4))
        properties = {key: {"type": kind} for key, kind in kinds.items()}
        schema = {"type": "object", "properties": properties, "required": list(kinds)}
        tools.append({"name": name, "description": draw(TEXTS), "parameters": schema})
        for _ in range(draw(st.integers(0, 2))):
            arguments = {key: draw(KINDS[kind]) for key, kind in kinds.items()}
            calls.append({"name": name, "arguments": arguments})
    query = draw(TEXTS.filter(str.strip))
    return {"query": query, "tools": tools, "calls": calls, "ask": []}


def is_reference(value: object) -> bool:
    return isinstance(value, str) and value.startswith("$")


@given(
    items().filter(
        lambda i: not any(is_reference(v) for c in i["calls"] for v in c["arguments"].values())
    )
)
def test_an_item_is_text_is_a_plan_with_the_same_calls(item: dict[str, Any]) -> None:
    (turn,) = turns_of(json.loads(json.dumps(item)))
    specs = [ToolSpec(t["name"], t["description"], t["parameters"]) for t in item["tools"]]
    plan = read(turn.answer, specs)
    found = [{"name": s.tool, "arguments": plain(s.arguments)} for s in plan.steps]
    assert found == item["calls"]
    assert turn.calls == len(item["calls"])
    assert turn.messages == compact_messages(item["query"], specs)
    assert turn.messages == planning_messages(COMPACT, item["query"], specs)
    assert planning_messages("", item["query"], specs) == plan_messages(item["query"], specs)


def test_the_short_prompt_is_short() -> None:
    item = next(lookup_items(1, 0))
    specs = [ToolSpec(t["name"], t["description"], t["parameters"]) for t in item["tools"]]
    short, long = (
        sum(len(m.content) for m in planning_messages(form, "Why?", specs))
        for form in (COMPACT, "")
    )
    assert short < long / 3


def tool(name: str, *needed: str, result: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {key: {"type": "string"} for key in needed}
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    made = {"name": name, "description": f"Does {name}.", "parameters": schema}
    return made if result is None else {**made, "result": result}


def test_nothing_fits_and_what_is_missing_is_asked_for() -> None:
    (none,) = turns_of({"query": "Hello?", "tools": [tool("a")], "calls": [], "ask": []})
    assert none.answer == "1. join()"
    assert none.called == {"a"}
    asks = {"query": "Do it", "tools": [tool("a", "x", "y")], "calls": [], "ask": ["x", "y"]}
    (asked,) = turns_of(asks)
    assert asked.answer == "# missing: x, y\n1. join()"
    assert missing_parameters(read(asked.answer)) == ("x", "y")
    assert missing_parameters(read(none.answer)) == ()


def test_calls_refer_to_earlier_ones_and_results_give_a_second_turn() -> None:
    names = {"type": "array", "items": {"type": "string"}}
    item = {
        "query": "The ages?",
        "tools": [tool("people", result=names), tool("age", "who")],
        "calls": [
            {"name": "people", "arguments": {}},
            {"name": "age", "arguments": {"who": "$item"}, "for_each": "$1"},
            {"name": "age", "arguments": {"who": "$1[0]"}},
            {"name": "age", "arguments": {"who": "$9"}},
        ],
        "results": [["Ann", "Bob"], [31, 42], 31, 7],
        "reply": "31 and 42.",
    }
    plan, conclusion = turns_of(item)
    assert plan.answer.splitlines()[1:4] == [
        "2. age(who=$item) for each $1",
        "3. age(who=$1[0])",
        '4. age(who="$9")',
    ]
    assert read(plan.answer).steps[2].arguments["who"] == Ref(1, (0,))
    text = conclusion.messages[-1].content
    assert '2. age(who="Bob") -> 42' in text
    assert '3. age(who="Ann") -> 31' in text
    assert (conclusion.answer, conclusion.calls) == ("31 and 42.", 0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "an item is an object"),
        ("{", "no JSON"),
        ("[" * 9999, "no JSON"),
        ('{"query": " "}', "query is a text"),
        ('{"query": "q", "tools": {}}', "tools is a list"),
        ('{"query": "q", "tools": [3]}', "a tool is an object"),
        ('{"query": "q", "tools": [{"name": ""}]}', "name is a text"),
        ('{"query": "q", "tools": [{"name": "a", "parameters": []}]}', "parameters of a tool"),
        ('{"query": "q", "tools": [{"name": "a", "description": 1}]}', "description"),
        ('{"query": "q", "calls": [{"name": "b"}]}', "there is no tool 'b'"),
        ('{"query": "q", "tools": [{"name": "a"}], "calls": [{"name": "a"}], "ask": ["x"]}',
         "either calls or parameters"),
        ('{"query": "q", "tools": [{"name": "a"}], "calls": [{"name": "a", "for_each": "x"}]}',
         "a reference such as"),
        ('{"query": "q", "results": [1], "reply": "r"}', "1 results for 0 calls"),
        ('{"query": "q", "calls": [{"name": "a", "arguments": {"x": "\\ud800"}}]}', "half a char"),
    ],
)  # fmt: skip
def test_what_is_no_item_is_told_with_its_line(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    good = json.dumps({"query": "q", "tools": [tool("a")], "calls": [], "ask": []})
    file.write_text(f"{good}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3") as raised:
        read_turns(file)
    assert said in raised.value.message


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty", tmp_path / "broken"
    empty.write_text("\n\n")
    broken.write_bytes(b"\xff\xfe")
    for file, said in ((empty, "no items"), (broken, "cannot be read"), (tmp_path, "cannot be")):
        with pytest.raises(InputError, match=said):
            read_turns(file)


def turn(called: set[str], offered: set[str]) -> PlannerTurn:
    return PlannerTurn((), "1. join()", 1, frozenset(called), frozenset(offered))


@given(st.integers(0, 99), st.floats(0.05, 0.6))
def test_the_names_of_test_tools_are_never_trained_on(seed: int, share: float) -> None:
    names = [f"tool_{number}" for number in range(40)]
    turns = [turn({names[n]}, {names[n], names[(n * 7 + 3) % 40]}) for n in range(40)]
    train, test = split_turns(turns, share, seed)
    tested = {name for one in test for name in one.called}
    assert not tested & {name for one in train for name in one.offered}
    assert (train, test) == split_turns(turns, share, seed)


def test_a_renamed_tool_stays_on_its_side() -> None:
    spelt = [turn({name}, {name}) for name in ("getPrice", "get_price", "Get.Price")]
    sides = [tuple(map(len, split_turns(spelt, 0.5, seed))) for seed in range(30)]
    assert set(sides) == {(3, 0), (0, 3)}


def test_lookups_are_items_whose_plans_fit_their_tools() -> None:
    made = list(lookup_items(400, 3))
    assert made == list(lookup_items(400, 3)) != list(lookup_items(400, 4))
    turns = [turn for item in made for turn in turns_of(json.loads(json.dumps(item)))]
    assert any(" for each $1" in each.answer for each in turns)
    assert any("# missing: " in each.answer for each in turns)
    assert any("[$1." in each.answer for each in turns)
    taken = {"city", "cities_of", "largest", "total"}  # those of examples/ask, which test a planner
    assert not taken & {name for each in turns for name in each.offered}
