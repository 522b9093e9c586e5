"""Random tools; random plans: any that have a text, and such as check over given tools."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from weft.core.schema import array_of, at, declared, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition
from weft.planner.signature import parameters_of, required_by

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    SCALARS | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Any JSON value, lists as tuples."""

TYPES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "integer", "minimum": 1, "maximum": 9},
        {"type": "string", "minLength": 1, "maxLength": 5},
        {"enum": ["a", "b", 'it\'s "c"']},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "minimum": -2.5, "maximum": 7.25},
        {"type": "integer", "multipleOf": 5},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {},
    ]
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, inner, min_size=1, max_size=3).flatmap(
        lambda members: st.lists(st.sampled_from(list(members)), unique=True).map(
            lambda required: {"type": "object", "properties": members, "required": sorted(required)}
        )
    )


SCHEMAS = st.recursive(
    TYPES,
    lambda inner: inner.map(lambda items: {"type": "array", "items": items}) | _objects(inner),
    max_leaves=5,
)


@st.composite
def registries(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    """One to five tools with parameters and results of any shape; all declare facts, or none."""
    names = draw(st.lists(NAMES | st.just("a.b-c/d"), min_size=1, max_size=5, unique=True))
    makes = draw(st.sampled_from([(), ("done",)]))
    return tuple(
        ToolSpec(
            name,
            draw(st.sampled_from(["", "Does something."])),
            draw(_objects(SCHEMAS))
            if draw(st.booleans())
            else {"type": "object", "properties": {}},
            draw(st.none() | SCHEMAS),
            makes=makes,
        )
        for name in names
    )


def literals(schema: JsonSchema) -> st.SearchStrategy[Any]:
    """JSON values of one of the schemas above."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([literals(part) for part in schema["anyOf"]])
    match schema.get("type"):
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 9))
        case "integer":
            step = schema.get("multipleOf", 1)
            return st.integers(schema.get("minimum"), schema.get("maximum")).map(step.__mul__)
        case "number":
            return _numbers(schema)
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(literals(schema.get("items", {})), max_size=3).map(tuple)
        case "object":
            return _dictionaries(schema)
        case _:
            return JSON


def _numbers(schema: JsonSchema) -> st.SearchStrategy[int | float]:
    above = schema.get("exclusiveMinimum")
    low = schema.get("minimum", above)
    floats = st.floats(
        low,
        schema.get("maximum"),
        allow_nan=False,
        allow_infinity=False,
        exclude_min=above is not None,
    )
    least = None if low is None else math.floor(low) + 1
    most = schema.get("maximum")
    return floats | st.integers(least, None if most is None else math.floor(most))


def _dictionaries(schema: JsonSchema) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of declared members, and of others where the schema leaves that open."""
    members = {name: literals(part) for name, part in schema.get("properties", {}).items()}
    required = {name: members.pop(name) for name in schema.get("required", ())}
    declared = st.fixed_dictionaries(required, optional=members)
    other = schema.get("additionalProperties", {})
    others = st.dictionaries(NAMES | st.text(max_size=4), literals(other), max_size=3)
    return st.tuples(declared, others).map(
        lambda both: {
            **{name: one for name, one in both[1].items() if name not in {*required, *members}},
            **both[0],
        }
    )


def places(source: Any, schema: JsonSchema | None, depth: int = 3) -> Iterator[tuple[Ref, Any]]:
    """The references into a result, each with what is known of what it leads to."""
    yield Ref(source), schema
    steps: list[str | int] = [*(declared(schema) or ())]
    if depth and schema is not None and schema.get("type") == "array":
        steps += [0, -1]
    for step in steps if depth else []:
        for ref, inner in places(source, at(schema, [step]), depth - 1):
            yield Ref(source, (step, *ref.path)), inner


@st.composite
def plans(draw: st.DrawFn, tools: tuple[ToolSpec, ...], most: int = 5) -> Plan:
    """A plan over `tools` that checks, with references, maps and conditions where they fit."""
    known: dict[int, JsonSchema | None] = {}
    steps: list[PlanStep] = []
    for number in range(1, draw(st.integers(0, most)) + 1):
        tool = draw(st.sampled_from(tools))
        step = draw(_steps(tool, number, known))
        if known and any(each.makes for each in tools):
            waits = draw(st.sets(st.sampled_from(list(known)), max_size=3))
            step = replace(step, after=tuple(sorted(waits)))
        steps.append(step)
        known[number] = array_of(tool.result) if steps[-1].over else tool.result
    everything = [ref for source, schema in known.items() for ref, _ in places(source, schema)]
    results = draw(st.lists(st.sampled_from(everything), max_size=3)) if everything else []
    return Plan(tuple(steps), tuple(results), draw(THOUGHTS))


THOUGHTS = st.just("") | st.text(max_size=20)


@st.composite
def _steps(
    draw: st.DrawFn, tool: ToolSpec, number: int, known: Mapping[int, JsonSchema | None]
) -> PlanStep:
    there = [place for source, schema in known.items() for place in places(source, schema)]
    lists = [ref for ref, schema in there if not mismatch(schema, {"type": "array"})]
    over = draw(st.none() | st.sampled_from(lists)) if lists else None
    when = None
    if there and draw(st.booleans()):
        when = draw(_condition(there))
    if over is not None:
        whole = next(schema for ref, schema in there if ref == over)
        there = [*there, *places("item", at(whole, [-1])), *places("index", {"type": "integer"})]
    arguments = {}
    for name, schema in parameters_of(tool).items():
        if name in required_by(tool) or draw(st.booleans()):
            fitting = [ref for ref, given in there if not mismatch(given, schema)]
            literal = literals(schema or {})
            arguments[name] = draw(literal | st.sampled_from(fitting) if fitting else literal)
    return PlanStep(number, tool.name, arguments, over, when, draw(THOUGHTS))


@st.composite
def _condition(draw: st.DrawFn, there: list[tuple[Ref, Any]]) -> StepCondition:
    """A condition that checks: it compares a result with what that can be."""
    ref, schema = draw(st.sampled_from(there))
    operators = ["", "not", "!=", "=="]
    for ordered, values in ((_NUMBER, _numbers({})), (_TEXT, st.text(max_size=5))):
        if not mismatch(schema, ordered) and draw(st.booleans()):
            return StepCondition(ref, draw(st.sampled_from(["<", "<=", ">", ">="])), draw(values))
    operator = draw(st.sampled_from(operators))
    match operator:
        case "!=":
            return StepCondition(ref, operator, draw(JSON))
        case "==":
            return StepCondition(ref, operator, draw(st.none() | literals(schema or {})))
        case _:
            return StepCondition(ref, operator)


_NUMBER, _TEXT = {"type": "number"}, {"type": "string"}
_REFS = st.builds(
    Ref,
    st.integers(0, 99) | st.sampled_from(["item", "index"]),
    st.lists(st.text(max_size=5) | st.integers(-9, 9), max_size=3).map(tuple),
)
_VALUES = st.recursive(
    JSON | _REFS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
_CONDITIONS = st.builds(StepCondition, _REFS, st.sampled_from(["", "not"])) | st.builds(
    StepCondition, _REFS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), JSON
)


@st.composite
def any_plans(draw: st.DrawFn) -> Plan:
    """Any plan that has a text; no tools know anything of what is in it."""
    numbers = sorted(draw(st.sets(st.integers(1, 99), max_size=5)))
    steps = tuple(
        PlanStep(
            number,
            draw(st.text(max_size=6) | NAMES | st.just("join")),
            draw(st.dictionaries(st.text(max_size=4) | NAMES, _VALUES, max_size=3)),
            draw(st.none() | _REFS),
            draw(st.none() | _CONDITIONS),
            draw(THOUGHTS),
            after=tuple(sorted(draw(st.sets(st.integers(0, 99), max_size=3)))),
        )
        for number in numbers
    )
    results = draw(st.lists(_REFS.filter(lambda ref: isinstance(ref.source, int)), max_size=3))
    return Plan(steps, tuple(results), draw(THOUGHTS))
