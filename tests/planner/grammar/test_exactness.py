"""What can and what cannot be written, by both grammars, with tools that are easy to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.planner.grammar.random_texts import Grammar
from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.check import check
from weft.planner.grammar import (
    GrammarLimits,
    loosened,
    most_steps,
    plan_grammar,
    step_grammar,
)
from weft.planner.text.reader import read

PRICE = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "currency": {"enum": ["EUR", "USD"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "made of": {"type": "array", "items": {"type": "object", "properties": {"id": {}}}},
    },
    "required": ["amount"],
}


def tool(name: str, result: Any = None, required: str = "", /, **parameters: Any) -> ToolSpec:
    schema = {"type": "object", "properties": parameters, "required": required.split()}
    return ToolSpec(name, "", schema, result)


TOOLS = (
    tool("price", PRICE, "item", item={"type": "string"}, count={"type": "integer", "minimum": 1}),
    tool(
        "total",
        {"type": "number"},
        "amounts",
        amounts={"type": "array", "items": {"type": "number"}},
    ),
    tool("say", None, "text", text={"type": "string", "maxLength": 9}, loud={"type": "boolean"}),
    tool("odd one", {"type": "string"}, "", **{"x y": {"const": 'a "b"'}}),
)
FIRST = '1. price(item="tea")\n2. price(item="milk", count=2)\n'
HELD = (
    "total(amounts=[$1.amount, 2.5, $2.amount])",
    "total(amounts=[])",
    'say(text="a\\nb", loud=true)',
    "say(text=$1.currency)",
    "say(text=$1.tags[0])",
    "say(text=$item) for each $1.tags",
    "say(text=$item, loud=false) for each $2.tags",
    "price(item=$item, count=$index) for each $1.tags",
    'price(item="x") if $1.amount >= 3',
    'price(item="x") if $1.currency == "EUR"',
    'price(item="x") if not $2.tags',
    '"odd one"("x y"="a \\"b\\"")',
    '"odd one"()',
    "join($1, $2.tags[1])",
    'join($1["made of"][0].id)',
    "join()",
)
REFUSED = (
    "nothing()",
    'price(item="x", item="y")',
    "price()",
    "price(item=3)",
    "price(item=tea)",
    'price(item="x", count=0)',
    'price(item="x", count=1.5)',
    'price(item="x", colour="red")',
    'price(item="$1.amount",)',
    "price(item=$1)",
    "price(item=$1.amount)",
    "price(item=$3.currency)",
    "price(item=$0)",
    "price(item=$item)",
    "price(item=$item) for each $1.currency",
    "price(item=$item.name) for each $1.tags",
    "price(item=$index) for each $1.tags",
    "total(amounts=$1.tags)",
    "total(amounts=[$1.currency])",
    "total(amounts=$1.amounts)",
    'say(text="0123456789")',
    'say(text="a\nb")',
    "say(text='a')",
    'say(text="a") if $1.amount == "EUR"',
    'say(text="a") if $1.currency == "GBP"',
    'say(text="a") if 3 > 2',
    '"odd one"("x y"="b")',
    "join($3)",
    "join($1.nothing)",
    'join("x")',
)


@pytest.mark.parametrize("call", HELD)
def test_what_is_right_can_be_written(call: str) -> None:
    end = "" if call.startswith("join") else "\n"
    rest = "" if call.startswith("join") else "4. join()"
    text = f"{FIRST}3. {call}{end}{rest}"
    plan = read(text, TOOLS)
    known = {1: PRICE, 2: PRICE}
    assert check(plan, TOOLS)
    assert Grammar(step_grammar(TOOLS, known, 3)).holds(f"3. {call}{end}")
    assert Grammar(plan_grammar(TOOLS, 5)).holds(text)


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_wrong_cannot_be_written(call: str) -> None:
    end = "" if call.startswith("join") else "\n"
    known = {1: PRICE, 2: PRICE}
    assert not Grammar(step_grammar(TOOLS, known, 3)).holds(f"3. {call}{end}")
    for rest in ("", "4. join()"):
        assert not Grammar(plan_grammar(TOOLS, 5)).holds(f"{FIRST}3. {call}{end}{rest}")


@pytest.mark.parametrize(
    "text",
    [
        "2. join()",
        '1. say(text="a")\n1. join()',
        '1. say(text="a")\n3. join()',
        '1. say(text="a") 2. join()',
        '1. say(text="a")\n2. say(text="b")\n3. say(text="c")\n4. join()',
    ],
)
def test_numbers_have_no_gaps_and_an_end(text: str) -> None:
    assert not Grammar(plan_grammar(TOOLS, 2)).holds(text)
    assert Grammar(plan_grammar(TOOLS, 2)).holds('1. say(text="a")\n2. say(text="b")\n3. join($2)')


def test_a_later_round_goes_on_behind_what_failed() -> None:
    grammar = Grammar(plan_grammar(TOOLS, 3, {2: PRICE}, first=5))
    assert grammar.holds("5. total(amounts=[$2.amount])\n6. join($2, $5)")
    assert not grammar.holds("3. total(amounts=[$2.amount])\n4. join($3)")
    assert not grammar.holds("5. total(amounts=[$1.amount])\n6. join($5)")
    assert not grammar.holds("5. total(amounts=[$6])\n6. join($5)")


def test_the_join_alone() -> None:
    grammar = Grammar(step_grammar(TOOLS, {1: PRICE}, 2, calls=False))
    assert grammar.holds("2. join($1.amount)")
    assert not grammar.holds('2. say(text="a")\n')


def test_a_plan_may_have_as_many_steps_as_types_can_be_held() -> None:
    # Eight results, with those of maps: four bits for each step, and two for the keys of a call.
    assert most_steps(TOOLS) == 15
    many = [tool(f"t{n}", {"const": n}, "", value={"const": n}) for n in range(32)]
    assert most_steps(many) == 9
    grammar = Grammar(plan_grammar(many, 9))
    steps = [f"{n}. t7({'value=$1' if n > 1 else ''})\n" for n in range(1, 10)]
    assert grammar.holds(f"{''.join(steps)}10. join()")
    assert not grammar.holds("1. t1()\n2. t2(value=$1)\n3. join()")
    with pytest.raises(ValueError, match="9 steps"):
        plan_grammar(many, 10)


def test_a_thought_before_each_line_where_it_is_wanted() -> None:
    text = '# so: 1. say("x")\n1. say(text="a")\n# done\n2. join($1)'
    limits = GrammarLimits(thought_chars=20)
    assert Grammar(plan_grammar(TOOLS, 2, limits=limits)).holds(text)
    assert not Grammar(plan_grammar(TOOLS, 2, limits=limits)).holds(f"# once\n{text}")
    assert not Grammar(plan_grammar(TOOLS, 2)).holds(text)
    plan = read(text, TOOLS)
    assert (plan.steps[0].thought, plan.thought) == ('so: 1. say("x")', "done")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "string", "pattern": "^(?=a).*$"}, "pattern"),
        ({"not": {"type": "string"}}, "not"),
        ({"oneOf": [{"type": "number"}, {"minimum": 3}]}, "oneOf"),
        ({"$ref": "#/$defs/missing"}, "missing"),
        ({"enum": list(range(2_001))}, "2,000"),
        ({"anyOf": [{"minimum": number} for number in range(65)]}, "64"),
    ],
)
def test_what_a_parameter_is_not_held_to_is_named(schema: Any, named: str) -> None:
    tools = [tool("find", None, "where", where=schema), tool("say", None, text={"type": "string"})]
    (told,) = loosened(tools)
    assert told.startswith("the parameter where of find is not held to ")
    assert named in told
    assert not loosened(tools[1:])


def test_a_tool_without_declared_parameters_takes_any_names() -> None:
    grammar = Grammar(plan_grammar([ToolSpec("any", "", {"type": "object"})], 2))
    text = '1. any(city="Bonn", limit=3, tags=["x", {"a": null}])\n2. any(value=$1.name)\n3. join()'
    assert len(read(text, [ToolSpec("any", "", {"type": "object"})]).steps) == 2
    assert grammar.holds(text)
    # Free names are not kept apart: that is left to the reader, which says what is wrong.
    twice = "1. any(city=1, city=2)\n2. join()"
    assert grammar.holds(twice)
    with pytest.raises(PlanError, match="the argument 'city' is given twice"):
        read(twice)


def test_items_that_need_not_be_alike_are_told_apart() -> None:
    pair = {
        "type": "array",
        "prefixItems": [{"type": "string"}, {"type": "number"}],
        "items": False,
    }
    result = {"anyOf": [pair, {"type": "array", "maxItems": 3, "items": {"type": "boolean"}}]}
    tools = [tool("get", result), tool("say", None, "text", text={"type": "string"})]
    grammar = Grammar(step_grammar(tools, {1: result}, 2))
    assert grammar.holds("2. say(text=$1[0])\n")
    assert not grammar.holds("2. say(text=$1[1])\n")
    assert not grammar.holds("2. say(text=$1[3])\n")
    assert grammar.holds("2. join($1[2])")
    assert not grammar.holds("2. join($1[3])")


FACTS = tuple(replace(tool, makes=("done",)) for tool in TOOLS)


def test_only_with_tools_that_declare_facts_a_step_waits_for_others() -> None:
    text = f'{FIRST}3. say(text="a") if $1.amount > 1 after $1, $2\n4. join()'
    for tools, held in ((TOOLS, False), (FACTS, True)):
        check(read(text, tools), tools)
        assert Grammar(plan_grammar(tools, 3)).holds(text) is held
        known: dict[int, Any] = {1: PRICE, 2: PRICE}
        line = text.splitlines()[2] + "\n"
        assert Grammar(step_grammar(tools, known, 3)).holds(line) is held


@pytest.mark.parametrize("after", ["after $3", "after $1.amount", "after", "after $1 $2"])
def test_a_step_waits_for_whole_earlier_steps_only(after: str) -> None:
    text = f'{FIRST}3. say(text="a") {after}\n4. join()'
    assert not Grammar(plan_grammar(FACTS, 3)).holds(text)
    line = Grammar(step_grammar(FACTS, {1: PRICE, 2: PRICE}, 3))
    assert not line.holds(text.splitlines()[2] + "\n")


def test_the_first_step_waits_for_none() -> None:
    assert not Grammar(plan_grammar(FACTS, 1)).holds('1. say(text="a") after $1\n2. join()')
    assert Grammar(plan_grammar(FACTS, 1)).holds('1. say(text="a")\n2. join()')
