"""Every plan that the checker accepts, the grammars accept, whatever the order of its names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.grammar.random_texts import Grammar
from tests.planner.strategies import plans, registries
from tests.profile import examples
from weft.core.errors import PlanError
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.check import check
from weft.planner.grammar import most_steps, plan_grammar, step_grammar
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition, Value
from weft.planner.text.reader import read
from weft.planner.text.writer import write, write_step

_STEPS = 4


@st.composite
def shuffled(draw: st.DrawFn, plan: Plan) -> Plan:
    """`plan` with arguments and keys in any order, and without remarks."""

    def mixed(value: Value) -> Value:
        if isinstance(value, Mapping):
            names = draw(st.permutations(list(value)))
            return {name: mixed(value[name]) for name in names}
        return tuple(map(mixed, value)) if isinstance(value, (list, tuple)) else value

    steps = [replace(one, arguments=mixed(one.arguments), thought="") for one in plan.steps]
    return replace(plan, steps=tuple(steps), thought="")


@st.composite
def referring(draw: st.DrawFn, tools: tuple[ToolSpec, ...], plan: Plan) -> Plan:
    """`plan` with a reference in the place of some value inside its arguments, where it checks."""
    made = []
    for step in plan.steps:
        known = [Ref(other.number) for other in made]
        inner = [] if not known or step.over else list(_inside(step.arguments))
        if inner and draw(st.booleans()):
            path, ref = draw(st.sampled_from(inner)), draw(st.sampled_from(known))
            step = replace(step, arguments=_with(step.arguments, path, ref))
        made.append(step)
    changed = replace(plan, steps=tuple(made))
    try:
        check(changed, tools)
    except PlanError:
        return plan
    return changed


def _inside(value: Value, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where values lie inside of `value`, itself not among them."""
    if isinstance(value, Mapping):
        named = value.items()
    else:
        named = enumerate(value) if isinstance(value, tuple) else ()
    for name, one in named:
        yield (*path, name)
        yield from _inside(one, (*path, name))


def _with(value: Value, path: tuple[str | int, ...], ref: Ref) -> Value:
    """`value` with `ref` at `path`."""
    if not path:
        return ref
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: _with(value[first], rest, ref)}
    return tuple(_with(one, rest, ref) if n == first else one for n, one in enumerate(value))


@st.composite
def accepted(draw: st.DrawFn) -> tuple[tuple[ToolSpec, ...], Plan]:
    tools = draw(registries())
    plan = draw(plans(tools, most=min(_STEPS, most_steps(tools))))
    return tools, draw(referring(tools, draw(shuffled(plan))))


def is_held(tools: tuple[ToolSpec, ...], plan: Plan) -> None:
    """Both grammars hold the text of a plan that checks."""
    is_held_at_once(tools, plan)
    known, text = check(plan, tools), write(plan)
    before: dict[int, JsonSchema | None] = {}
    for step in plan.steps:
        line = f"{write_step(step)}\n"
        assert Grammar(step_grammar(tools, before, step.number)).holds(line), line
        before[step.number] = known[step.number]
    join = text.splitlines()[-1]
    assert Grammar(step_grammar(tools, before, len(plan.steps) + 1)).holds(join), join


def is_held_at_once(tools: tuple[ToolSpec, ...], plan: Plan) -> None:
    """The grammar of a whole plan holds it."""
    check(plan, tools)
    text = write(plan)
    assert read(text, tools) == plan
    assert Grammar(plan_grammar(tools, max(1, len(plan.steps)))).holds(text), text


@given(accepted())
@examples(60)
def test_what_the_checker_accepts_the_grammars_accept(
    drawn: tuple[tuple[ToolSpec, ...], Plan],
) -> None:
    is_held(*drawn)


INNER = Ref(1, ("b",))


@pytest.mark.parametrize("value", [(INNER,), ({"x": INNER},), {"x": INNER}, {"x": (INNER, 1)}])
def test_references_lie_anywhere_in_what_has_no_schema(value: Value) -> None:
    kind = "array" if isinstance(value, tuple) else "object"
    for schema in ({}, {"type": kind}):
        tools = (ToolSpec("use", "", {"type": "object", "properties": {"a": schema}}),)
        is_held(tools, Plan((PlanStep(1, "use"), PlanStep(2, "use", {"a": value}))))


@pytest.mark.slow
@given(accepted())
@examples(10_000)
def test_ten_thousand_plans_that_the_checker_accepts(
    drawn: tuple[tuple[ToolSpec, ...], Plan],
) -> None:
    is_held_at_once(*drawn)


ANYTHING = {"type": "object"}
NUMBER = {"type": "number"}
CASES: list[tuple[Any, Any]] = [
    (ANYTHING, {"x": 1, "y": 2}),
    (ANYTHING, {"name": "Ann", "email": "a@b.c"}),
    (ANYTHING, {"lat": 52.5, "lon": 13.4}),
    (ANYTHING, {"b": {"c": [], "a": {}}, "a": [{"z": None}, {"z": True}], "": "", "größe": 1}),
    ({"type": "array", "items": NUMBER}, list(range(500))),
    (NUMBER, 8.854e-12),
    (NUMBER, 3e8),
    (NUMBER, 1.7976931348623157e308),
    (NUMBER, 5e-324),
    (NUMBER, 3.141592653589793),
    (NUMBER, -0.1234567890123456),
    (NUMBER, 1e22),
    ({"type": "integer"}, 1_732_300_800_000),
    ({"type": "integer"}, 2**64),
    ({"type": "integer"}, 3.0),
    ({"type": "number", "minimum": 0, "maximum": 1}, 1e-5),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.999999999),
    ({"type": "number", "exclusiveMinimum": 0.25, "maximum": 0.75}, 0.2500001),
    ({"type": "number", "multipleOf": 0.01}, 19.99),
    ({"type": "integer", "multipleOf": 5}, -250),
    ({"type": "array", "items": {"type": "integer", "multipleOf": 5}}, [-5, 0, 5, 10.0, -(10**20)]),
    ({"type": "integer", "multipleOf": 5}, 10**20 + 5),
    ({"type": "integer", "multipleOf": 5, "maximum": -5}, -5),
    ({"type": "number", "multipleOf": 0.25}, 0.75),
    ({"type": "string"}, "x" * 4_000),
    ({"type": "string"}, 'a\x01\x7f"\\\n\u2028é漢😀'),
    ({"type": "string", "format": "date-time"}, "2026-11-21T09:30:00"),
    ({"type": "string", "format": "time"}, "09:30"),
    ({"type": "string", "pattern": "^(?=a).*$"}, "ab"),
    ({"not": {"type": "string"}}, 3),
    ({"oneOf": [{"type": "number"}, {"minimum": 3}]}, 2),
    ({"$ref": "#/$defs/missing"}, {"a": 1}),
    (
        {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False},
        {"x-a": 1},
    ),
    ({"type": "object", "properties": {"a": NUMBER, "b": NUMBER, "c": NUMBER}}, {"c": 1, "a": 2}),
    ({"type": "object", "properties": {"a": NUMBER}}, {"z": 1, "a": 2, "y": 3}),
    ({"const": {"a": 1, "b": [True]}}, {"b": [True], "a": 1}),
    ({"enum": [1, 2.0, "x"]}, 1.0),
    ({"enum": [1, 2.0, "x"]}, 2),
    ({"anyOf": [{"const": number} for number in range(100)]}, 77),
    ({"enum": [f"value {number}" for number in range(3_000)]}, "value 2999"),
    (
        {"type": "object", "minProperties": 2, "properties": {c: {} for c in "abc"}},
        {"c": 1, "a": 2},
    ),
]


@pytest.mark.parametrize(("schema", "value"), CASES)
@pytest.mark.parametrize("required", [True, False])
def test_values_that_json_and_the_checker_allow(schema: Any, value: Any, *, required: bool) -> None:
    parameters = {"properties": {"x": schema, "y": {}}, "required": ["x"] if required else []}
    tools = (ToolSpec("use", "", {"type": "object", **parameters}),)
    frozen = _frozen(value)
    is_held(tools, Plan((PlanStep(1, "use", {"y": None, "x": frozen}),)))


def _frozen(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _deep(make: Callable[[Value], Value], levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = make(value)
    return value


def test_as_deep_as_the_checker_goes() -> None:
    tools = (ToolSpec("use", "", {"type": "object"}),)
    for make in (lambda value: (value,), lambda value: {"a": value, "b": ()}):
        is_held(tools, Plan((PlanStep(1, "use", {"x": _deep(make, 15)}),)))


@pytest.mark.parametrize("required", [[], ["a", "b"]])
def test_a_condition_on_an_object_where_no_parameter_is_one(required: list[str]) -> None:
    item = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": required}
    tools = (ToolSpec("get", "", {"type": "object", "properties": {}}, item),)
    when = StepCondition(Ref(1), "==", {"b": 2, "a": 1})
    is_held(tools, Plan((PlanStep(1, "get"), PlanStep(2, "get", when=when))))


def test_many_parameters_in_any_order() -> None:
    names = [f"p{number}" for number in range(40)]
    schema = {"properties": {name: {"type": "integer"} for name in names}, "required": names[:12]}
    tools = (ToolSpec("use", "", {"type": "object", **schema}),)
    is_held(tools, Plan((PlanStep(1, "use", dict.fromkeys(reversed(names), 1)),)))
    grammar = Grammar(step_grammar(tools, {}, 1))
    assert not grammar.holds(f"1. use({', '.join(f'{name}=1' for name in names[1:])})\n")
    assert not grammar.holds(f"1. use({', '.join(f'{name}=1' for name in [*names, 'p3'])})\n")
