"""The steps of a plan with the facts of their tools, as far as these are known before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.errors import PlanError, UnknownReference
from weft.core.facts import Bindings, Parameter
from weft.planner.compile import Results, resolve
from weft.planner.plan import PlanStep, refs_in
from weft.planner.rehearsal.tool_facts import ToolFacts, constant_of
from weft.planner.signature import parameters_of
from weft.planner.text.writer import write_value

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class BoundStep:
    """A step, the facts of its tool (None: it has none), and constants for their parameters."""

    step: PlanStep
    facts: ToolFacts | None = None
    bindings: Bindings = field(default_factory=dict)


def bind_steps(
    steps: Sequence[PlanStep], declared: Mapping[str, ToolFacts], results: Results
) -> list[BoundStep]:
    """`steps` with their facts. `results`: values of steps that are done.

    Raises: `PlanError` for a step with facts that is repeated for each item of a list, that may be
    skipped, or an argument of which is no constant that is known now.
    """
    skippable: set[int] = set()
    bound = []
    for step in steps:
        if step.when is not None or not skippable.isdisjoint(step.needs):
            skippable.add(step.number)
        facts = declared.get(step.tool)
        if facts is None:
            bound.append(BoundStep(step))
            continue
        if step.over is not None:
            what = f"whether each call of {step.tool} can be made is not known before the list is"
            raise _refusal(step, what, "write one step for each item, or end this plan before it")
        if step.number in skippable:
            what = (
                f"whether {step.tool} is called, and what then holds, is not known before the run"
            )
            raise _refusal(step, what, "end this plan before it: the next plan knows the result")
        bound.append(BoundStep(step, facts, _bindings(step, facts, results)))
    return bound


def _bindings(step: PlanStep, facts: ToolFacts, results: Results) -> Bindings:
    return {Parameter(name): _constant(step, facts, name, results) for name in facts.parameters}


def _constant(step: PlanStep, facts: ToolFacts, name: str, results: Results) -> str:
    value = step.arguments.get(name, _MISSING)
    if value is _MISSING:
        schema = parameters_of(facts.spec)[name]
        value = _MISSING if schema is None else schema.get("default", _MISSING)
    if value is _MISSING:
        what = f"the argument {name} is missing, and facts of {step.tool} depend on it"
        raise _refusal(step, what, f"give it: {name}=...")
    known = _known(step, name, value, results)
    constant = constant_of(known)
    if constant is None:
        what = f"the argument {name} is no text, number or boolean, so no fact can name it"
        raise _refusal(step, what, "write one step for each value")
    return constant


def _known(step: PlanStep, name: str, value: Any, results: Results) -> Any:
    unknown = next((ref for ref in refs_in(value) if ref.source not in results), None)
    if unknown is not None:
        what = (
            f"the argument {name} is {write_value(unknown)}, which is not known before the run, and"
            f" facts of {step.tool} depend on it"
        )
        hint = "write the value, or end this plan before it: the next plan knows the result"
        raise _refusal(step, what, hint)
    try:
        return resolve(value, results)
    except UnknownReference as error:
        raise _refusal(step, error.message, error.hint) from None


def _refusal(step: PlanStep, what: str, hint: str | None) -> PlanError:
    return PlanError(what, line=step.line, step=step.number, hint=hint)
