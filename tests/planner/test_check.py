"""A plan that cannot run is refused, with words that a model can act on; one that can, is not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.planner.shop import LINES, NUMBER, SHOP, STRING, TEXT, record
from tests.planner.strategies import JSON, SCHEMAS, literals, plans, registries
from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.check import PlanLimits, check, check_step, misfit
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition
from weft.planner.prompt import tools_section
from weft.planner.text.reader import PlanReader, read

EMPTY = {"type": "array", "items": False}
LINE = record(title=STRING, amount=NUMBER)


def refused(text: str, tools: tuple[ToolSpec, ...] = SHOP) -> PlanError:
    with pytest.raises(PlanError) as caught:
        read(text, tools)
    return caught.value


@pytest.mark.parametrize(
    ("step", "column", "message", "hint"),
    [
        ('prise(item="a")', 4, "there is no tool 'prise'", "did you mean price? there are"),
        ('price(itm="a")', 10, "price has no parameter 'itm'", "did you mean item?"),
        ("price()", 4, "the argument item is missing", 'price(item: string, unit?: "kg" | "lb")'),
        ("price(item=3)", 10, "item: integer can never be string", "item is string"),
        ('price(item="a", unit="g")', 20, "unit: 'g' is never 'kg' or 'lb'", 'unit is "kg" | "lb"'),
        ('price(item="a", unit=null)', 20, "unit: null can never", "leave unit out instead"),
        ('total(amounts=[1, "b"])', 10, "amounts: [1]: string can never be number", "number[]"),
        ("total(amounts=3)", 10, "amounts: integer can never be array", "amounts is number[]"),
        ('total(amounts="$1")', 10, "string can never be", "without quotes: amounts=$1"),
        ('describe(text="a", place=" 3")', 23, "string can never be", "without quotes: place=3"),
        ('describe(text="a", place="[")', 23, "string can never be", "place is integer"),
        ('describe(text="a", place=-1)', 23, "place: -1 is less than 0", "place is integer"),
        ("warn(text=$3)", 9, "$3 is not there yet", "earlier steps"),
        ("warn(text=$9)", 9, "$9 is not there yet", "earlier steps"),
        ("warn(text=$0)", 9, "there is no step 0", "there are: $1, $2"),
        ("warn(text=$item)", 9, "$item is used outside of a `for each`", "write `for each $1`"),
        ("warn(text=$1.sum)", 9, "$1 has no property 'sum'", "there are: amount, note"),
        ("warn(text=$1[0])", 9, "$1 is object and has no item 0", ""),
        ("warn(text=$1)", 9, "text: object can never be string", "did you mean $1.note?"),
        ("warn(text=$1.amount)", 9, "text: number can never be string", "text is string"),
        ("warn(text=$2.lines.title)", 9, "$2.lines is array and has no", "$2.lines[0].title; for"),
        ("warn(text=$2.lines)", 9, "text: array can never be string", "write `for each $2.lines`"),
        ("warn(text=$item) for each $2.lines", 9, "text: object can never", "mean $item.title?"),
        ("warn(text=$item.titel) for each $2.lines", 9, "$item has no", "did you mean title?"),
        ("warn(text=$index) for each $2.lines", 9, "text: integer can never be string", ""),
        ('warn(text="a") for each $2', 19, "object can never be array", "such as $2.lines"),
        ('warn(text="a") for each $1.amount', 19, "number can never be array", "a list is needed"),
        ('warn(text="a") for each $item', 19, "cannot stand behind `for each`", ""),
        ('warn(text="a") for each $2.lines if $item.amount > 1', 37, "behind `if`", ""),
        ('warn(text="a") if $1.sum > 1', 19, "$1 has no property 'sum'", ""),
        ('warn(text="a") if $1.amount == "x"', 19, "if $1.amount: string can never be number", ""),
        ('warn(text="a") if $1.note > 3', 19, "if $1.note: number can never be string", ""),
        ('warn(text="a") if $2.lines > 3', 19, "if $2.lines: array can never be number or", ""),
        ('warn(text="a") if $1.amount > true', 19, "boolean can never be", ""),
        ("total(amounts=[$1])", 10, "amounts: [0]: object can never be number", "number[]"),
        ("total(amounts=$2.lines)", 10, "amounts: []: object can never be number", ""),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused(step: str, column: int, message: str, hint: str) -> None:
    error = refused(f'1. price(item="a")\n2. total(amounts=[$1.amount])\n3. {step}\n')
    assert (error.line, error.column, error.step) == (3, column, 3)
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('1. warn(text="a")\n1. warn(text="a")\n', "the number 1 follows 1"),
        ('0. warn(text="a")\n', "the number 0 follows 0"),
        ('1. warn(text="a")\n2. join($2)\n', "there is no step 2"),
        ("join($1)", "there is no step 1"),
        ('1. price(item="a")\n2. join($1.sum)', "$1 has no property 'sum'"),
    ],
)
def test_numbers_and_joins_are_checked(text: str, message: str) -> None:
    assert message in refused(text).message


def test_results_of_maps_are_lists_and_schemas_keep_their_definitions() -> None:
    plan = read(TEXT, SHOP)
    schemas = check(plan, SHOP)
    assert list(schemas) == [1, 2, 3, 4, 5]
    assert schemas[1] == SHOP[0].result
    assert schemas[4] == {"type": "array", "items": STRING}
    assert schemas[5] is None
    tool = ToolSpec("lines", "", record(), LINES | {"$defs": {"Line": LINE}})
    twice = "1. lines()\n2. lines() for each $1\n3. warn(text=$2[0][0].title)\n4. join($3)"
    assert check(read(twice, (*SHOP, tool)), (*SHOP, tool))[3] is None
    wrong = refused(twice.replace("title", "amount"), (*SHOP, tool))
    assert wrong.message == "text: number can never be string"
    inside = "1. lines()\n2. total(amounts=[$1[0].amount, $1[0]])\n3. join()"
    assert refused(inside, (*SHOP, tool)).message == "amounts: [1]: object can never be number"


def test_earlier_rounds_may_be_referred_to() -> None:
    known = {2: record(amount=NUMBER), 5: None}
    text = "6. total(amounts=[$2.amount, $5.anything[3]])\n7. join($2, $6)\n"
    plan = read(text, SHOP, known=known)
    assert list(check(plan, SHOP, known)) == [6]
    with pytest.raises(PlanError, match=r"the number 4 follows 5 \(go on with 6\)"):
        read("4. warn(text=$5)\n", SHOP, known=known)
    with pytest.raises(PlanError, match=r"there is no step 1 \(there are: \$2, \$5\)"):
        read("6. warn(text=$1)\n", SHOP, known=known)


def test_what_cannot_be_proved_wrong_passes() -> None:
    tools = (
        ToolSpec("any", "", {"type": "object"}),
        ToolSpec("open", "", {"type": "object", "properties": {}, "additionalProperties": STRING}),
        ToolSpec("loose", "", record(), {"type": "object", "additionalProperties": True}),
        ToolSpec("maybe", "", record(), {"anyOf": [STRING, {"type": "array", "items": STRING}]}),
    )
    text = """\
1. any(what=[$1, {"a": 1}], else=null)
2. open(key="a")
3. loose(anything=$1.a.b[0])
4. maybe()
5. open(key=$4) for each $4 if $4 == "x"
6. open(key=$3.whatever, other=$4[0])
7. join($3.x, $5[0])
"""
    text = text.replace("[$1, ", "[").replace("anything=$1.a.b[0]", "")
    assert len(check(read(text, tools), tools)) == 6
    assert "string" in refused(text.replace('key="a"', "key=3"), tools).message


def test_what_a_schema_forbids_altogether_is_no_surprise() -> None:
    tools = (
        *SHOP,
        ToolSpec("odd", "", record("x", x=False), record("f", f=False, empty=EMPTY)),
    )
    assert len(read("1. odd()\n2. warn(text=$item) for each $1.empty\njoin()", tools).steps) == 2
    for text in ("1. odd(x=1)\n", "1. odd()\n2. warn(text=$1)\n", "1. odd()\n2. warn(text=$1.f)\n"):
        refused(text, tools)


def test_a_plan_made_by_a_program_is_bounded_too() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = (deep,)
    limits = PlanLimits(steps=1, step=100, depth=4)
    step = PlanStep(1, "warn", {"text": "a"})
    for plan, why in [
        (Plan((step, replace(step, number=2))), "more than 1 steps"),
        (Plan((replace(step, arguments={"text": deep}),)), "nest deeper than 4"),
        (Plan((replace(step, arguments={"text": Ref(1, (0,) * 5)}),)), "nest deeper than 4"),
        (Plan((replace(step, when=StepCondition(Ref(1), "==", deep)),)), "nest deeper than 4"),
        (Plan((replace(step, arguments={"text": "a" * 100}),)), "more than 100 characters"),
        (Plan((replace(step, arguments={"text": float("nan")}),)), "nan is neither"),
        (Plan((replace(step, arguments={"text": "\ud800"}),)), "half a character"),
    ]:
        with pytest.raises(PlanError, match=why):
            check(plan, SHOP, limits=limits)


def test_the_step_of_an_error_is_named_without_a_text() -> None:
    with pytest.raises(PlanError) as caught:
        check_step(PlanStep(7, "warn", {"text": 1}, line=4), SHOP, {})
    assert (caught.value.line, caught.value.column, caught.value.step) == (4, 1, 7)


@given(registries().flatmap(lambda tools: st.tuples(st.just(tools), plans(tools))))
def test_plans_over_random_tools_check(given: tuple[tuple[ToolSpec, ...], Plan]) -> None:
    tools, plan = given
    assert list(check(plan, tools)) == [step.number for step in plan.steps]


@given(SCHEMAS, JSON)
def test_a_literal_that_fits_is_never_refused(schema: dict[str, Any], value: Any) -> None:
    if Draft202012Validator(schema).is_valid(_lists(value)):
        assert misfit(value, schema, _unknown) is None


@given(SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), literals(schema))))
def test_a_literal_made_to_fit_is_never_refused(given: tuple[dict[str, Any], Any]) -> None:
    schema, value = given
    assert misfit(value, schema, _unknown) is None


@given(SCHEMAS, JSON)
def test_a_literal_that_does_not_fit_is_refused(schema: dict[str, Any], value: Any) -> None:
    """These schemas use only keywords that can be proved not to fit."""
    if not Draft202012Validator(schema).is_valid(_lists(value)):
        assert misfit(value, schema, _unknown) is not None


SHAPES = ["type", "properties", "required", "items", "prefixItems", "additionalProperties"]
VALUES = ["enum", "const", "minimum", "maxLength", "minItems"]
KEYWORDS = st.sampled_from([*SHAPES, *VALUES, "anyOf", "allOf", "$ref", "$defs", "a"])
ANYTHING = st.recursive(
    st.sampled_from([None, True, False, 0, -1, 2.5, "a", "array", "object", "#/$defs/a", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)
HOSTILE = st.dictionaries(KEYWORDS, ANYTHING, max_size=5)


@given(HOSTILE, HOSTILE)
def test_no_schema_breaks_the_checker_or_the_prompt(
    parameters: dict[str, Any], result: dict[str, Any]
) -> None:
    tools = (ToolSpec("a", "", parameters, result),)
    assert "a(" in tools_section(tools)
    for step in (
        "2. a(a=$1)",
        '2. a(a=[$1.a, {"a": $1[0]}], b=1)',
        '2. a(a="1") for each $1 if $1 == "a"',
        "2. a(a=$item.a) for each $1.a if $1.a > 1",
    ):
        reader = PlanReader(tools, known={1: result})
        with suppress(PlanError):
            reader.feed(f"{step}\n3. join($1, $2.a[0])")


def _unknown(_: Ref) -> None:
    return None


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, tuple) else value
