"""Gold answers with one kind of error each: what a skill's figure must notice, and no other's.

An error is planted in the answers to its own task only; every other answer stays gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evals.planning.skills.case import SkillCase
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.plan import Plan, PlanStep, Value, refs_in
from weft.planner.signature import parameters_of
from weft.planner.text.writer import write

INVENTED: Final = " The reference number is 918273645, as confirmed by Zorblatt."
_EMPTY: Final[Mapping[str, Any]] = {
    "string": "something else",
    "integer": -987654,
    "number": -987654.5,
    "boolean": False,
    "array": (),
    "object": {},
}


@dataclass(frozen=True, slots=True)
class PlantedError:
    """`tasks`: the rows that show it. `spoil`: the answer with the error in it."""

    tasks: tuple[str, ...]
    spoil: Callable[[SkillCase], str]


def placeholder(schema: JsonSchema | None) -> Value:
    """A value of the type that `schema` asks for."""
    described = schema or {}
    if described.get("enum"):
        return described["enum"][0]
    kind = described.get("type")
    return _EMPTY.get(kind, "something else") if isinstance(kind, str) else "something else"


def _distractor_name(case: SkillCase, plan: Plan) -> Plan:
    """One more call, of an offered tool that is not needed."""
    called = {step.tool for step in plan.steps}
    other = next((tool for tool in case.tools if tool.name not in called), None)
    if other is None:
        return plan
    needed = other.parameters.get("required", ())
    schemas = parameters_of(other)
    arguments = {name: placeholder(schemas[name]) for name in needed}
    return replace(plan, steps=(*plan.steps, PlanStep(_next(plan), other.name, arguments)))


def _wrong_value(case: SkillCase, plan: Plan) -> Plan:
    """Another value of the same type for the first argument that may have one."""
    step = plan.steps[0]
    schemas = _schemas(case, step.tool)
    free = [name for name in step.arguments if not (schemas[name] or {}).get("enum")]
    name = next(iter([*free, *step.arguments]), None)
    if name is None:
        return plan
    given = step.arguments[name]
    other = not given if isinstance(given, bool) else placeholder(schemas[name])
    return Plan((replace(step, arguments={**step.arguments, name: other}), *plan.steps[1:]))


def _lost_call(_: SkillCase, plan: Plan) -> Plan:
    """Without the last call."""
    return Plan(plan.steps[:-1])


def _lost_reference(case: SkillCase, plan: Plan) -> Plan:
    """Literals where results of other calls are due."""
    return Plan(tuple(_literal(case, step) for step in plan.steps))


def _wrong_order(case: SkillCase, plan: Plan) -> Plan:
    """The calls from the last to the first; results that are not there yet become literals."""
    steps = reversed(_lost_reference(case, plan).steps)
    return Plan(tuple(replace(step, number=number) for number, step in enumerate(steps, 1)))


def _eager_call(case: SkillCase, plan: Plan) -> Plan:
    """A call where the user has to speak first."""
    return plan if plan.steps else Plan((PlanStep(1, case.tools[0].name, {}),))


def _literal(case: SkillCase, step: PlanStep) -> PlanStep:
    schemas = _schemas(case, step.tool)
    arguments = {
        name: placeholder(schemas[name]) if any(refs_in(value)) else value
        for name, value in step.arguments.items()
    }
    return replace(step, arguments=arguments)


def _schemas(case: SkillCase, name: str) -> Mapping[str, JsonSchema | None]:
    tool: ToolSpec = next(tool for tool in case.tools if tool.name == name)
    return parameters_of(tool)


def _next(plan: Plan) -> int:
    return max((step.number for step in plan.steps), default=0) + 1


def _in_plan(change: Callable[[SkillCase, Plan], Plan]) -> Callable[[SkillCase], str]:
    def spoil(case: SkillCase) -> str:
        return case.gold if case.plan is None else write(change(case, case.plan))

    return spoil


_BOTH_PARALLEL: Final = ("parallel", "bfcl_parallel", "bfcl_parallel_multiple")
PLANTED: Final[Mapping[str, PlantedError]] = {
    "distractor_name": PlantedError(("names",), _in_plan(_distractor_name)),
    "wrong_value": PlantedError(("parameters",), _in_plan(_wrong_value)),
    "lost_call": PlantedError(_BOTH_PARALLEL, _in_plan(_lost_call)),
    "wrong_order": PlantedError(("chained",), _in_plan(_wrong_order)),
    "lost_reference": PlantedError(("nested",), _in_plan(_lost_reference)),
    "eager_call": PlantedError(("next_best",), _in_plan(_eager_call)),
    "invented_fact": PlantedError(("response",), lambda case: case.gold + INVENTED),
}
"""One kind for each skill; the figures of `parallel` are BFCL's two, and theirs together."""
