"""Errors of a rehearsal: the step, the fact that is missing, and what makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from weft.core.errors import PlanError
from weft.core.facts import FactPattern, Parameter
from weft.core.suggestion import closest
from weft.planner.plan import Plan
from weft.planner.rehearsal.problem import FillProblem
from weft.planner.rehearsal.search import NoFill
from weft.planner.rehearsal.tool_facts import ToolFacts, argument_of, makers
from weft.planner.rehearsal.world import World, open_terms
from weft.planner.signature import parameters_of
from weft.planner.text.writer import parameter_name, tool_name, write_value

_SHOWN = 3


def no_fill_error(plan: Plan, problem: FillProblem, found: NoFill, states: int) -> PlanError:
    """The error of `plan` where the search ended with `found`."""
    world = problem.world(found.state)
    missing = world.unmet(*problem.needs(found.step))
    is_goal = found.step == len(plan.steps)
    step = None if is_goal else plan.steps[found.step]
    line = (plan.steps[-1].line + 1 if plan.steps else 1) if step is None else step.line
    number = None if step is None else step.number
    if missing is None:  # the search was about to go on from it
        what = f"no way to carry out the rest of the plan was found among {states:,} states"
        return PlanError(what, line=line, step=number, hint="write the missing steps")
    what = f"the goal {missing}" if step is None else f"{step.tool} needs {missing}, which"
    what += " does not hold then"
    if found.spent:
        what += f", and none of {states:,} states leads to it"
    return PlanError(what, line=line, step=number, hint=_remedy(missing, problem.declared, world))


def _remedy(missing: FactPattern, declared: Mapping[str, ToolFacts], world: World) -> str:
    calls = list(islice(_calls(missing, declared), _SHOWN))
    if calls:
        first = f"make it so first: {' or '.join(calls)}"
        stuck = any(facts.fill for facts, *_ in makers(open_terms(missing), declared.values()))
        return f"{first}; no such call was found that can be made" if stuck else first
    names = {fact.name for fact in world}
    names |= {make.name for facts in declared.values() for make in facts.makes}
    if missing.name not in names and (near := closest(missing.name, sorted(names))):
        return f"did you mean {near}? no tool makes {missing.name}"
    if missing.negated:
        return "no tool undoes it: leave it out of the facts, or leave the step out"
    return "no tool makes it: add it to the facts, or leave the step out"


def _calls(missing: FactPattern, declared: Mapping[str, ToolFacts]) -> Iterator[str]:
    """The calls that make `missing`, with `...` for arguments that it does not determine."""
    for facts, _, bindings in makers(missing, declared.values()):
        schemas = parameters_of(facts.spec)
        known = []
        for name in facts.parameters:
            constant = bindings.get(Parameter(name))
            value = None if constant is None else argument_of(constant, schemas[name])
            known.append(f"{parameter_name(name)}={'...' if value is None else write_value(value)}")
        yield f"{tool_name(facts.name)}({', '.join(known)})"
