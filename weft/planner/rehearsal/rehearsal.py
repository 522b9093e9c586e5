"""Rehearses a plan with facts before its first call: fills in missing calls, orders all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from weft.core.errors import InternalError, PlanError
from weft.core.facts import Fact, FactPattern
from weft.core.values import ToolSpec
from weft.planner.compile import Results
from weft.planner.plan import LIMITS, Plan, PlanLimits, PlanStep, Ref, renumber_ref, renumber_step
from weft.planner.rehearsal.defects import no_fill_error
from weft.planner.rehearsal.grounding import MAX_CALLS, TooManyCalls
from weft.planner.rehearsal.options import STATES
from weft.planner.rehearsal.order import ordered
from weft.planner.rehearsal.problem import FillProblem
from weft.planner.rehearsal.search import FillAction, NoFill
from weft.planner.rehearsal.steps import BoundStep, bind_steps
from weft.planner.rehearsal.tool_facts import declared_facts
from weft.planner.rehearsal.world import World

_NO_RESULTS: Final[Results] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RehearsedPlan:
    """A plan each call of which finds what it needs, in every order that its steps allow.

    inserted  the numbers of the steps that were filled in
    ordered   the numbers of the steps that now wait for others with `after`
    states    the number of states that the search has seen
    """

    plan: Plan
    inserted: tuple[int, ...] = ()
    ordered: tuple[int, ...] = ()
    states: int = 0


def rehearse(
    plan: Plan,
    tools: Sequence[ToolSpec],
    facts: Iterable[Fact],
    goals: Sequence[FactPattern] = (),
    *,
    results: Results = _NO_RESULTS,
    first: int = 1,
    states: int = STATES,
    limits: PlanLimits = LIMITS,
) -> RehearsedPlan:
    """Rehearse `plan`, which has been checked, beginning with `facts` and ending with `goals`.

    The steps are rehearsed in the order of their numbers. Missing calls of tools with `fill` are
    inserted, and all steps are numbered again; a plan that lacks none keeps its numbers. A tool
    that declares no facts needs and changes nothing. `results` are values of steps that are done,
    `first` is the first number in a plan without steps, `states` bounds the search.

    Raises: `PlanError` with step, missing fact and remedy; `BuildError` for malformed facts of a
    tool.
    """
    declared = declared_facts(tools)
    bound = bind_steps(plan.steps, declared, results)
    problem = FillProblem(bound, declared, frozenset(facts), goals)
    moves, seen = _moves(plan, problem, bound, states)
    steps, inserted = _numbered(moves, bound, first)
    if len(steps) > limits.steps:
        raise PlanError(
            f"the plan has {len(steps)} steps with those that are filled in, {limits.steps} are"
            " allowed",
            hint="ask for less",
        )
    if not problem.runs(steps):
        raise InternalError("a rehearsed plan does not run")
    safe = ordered([each.step for each in steps], list(problem.accesses(steps)))
    waiting = tuple(
        new.number for new, old in zip(safe, steps, strict=True) if new.after != old.step.after
    )
    whole = replace(plan, steps=safe, results=_results(plan, moves, safe))
    return RehearsedPlan(whole, inserted, waiting, seen)


def facts_after(
    steps: Iterable[PlanStep],
    tools: Sequence[ToolSpec],
    facts: Iterable[Fact],
    results: Results = _NO_RESULTS,
) -> frozenset[Fact]:
    """The facts that hold after `steps` have succeeded, beginning with `facts`.

    Raises: `PlanError` where that is not known.
    """
    world = World(facts)
    for each in bind_steps(tuple(steps), declared_facts(tools), results):
        if each.facts is not None:
            world.apply(each.facts.makes, each.bindings)
    return frozenset(world)


_Moves = Sequence[FillAction | None]


def _moves(
    plan: Plan, problem: FillProblem, bound: Sequence[BoundStep], states: int
) -> tuple[_Moves, int]:
    """The calls to fill in and None for each step, and the states seen. Raises: `PlanError`."""
    if problem.runs(bound):
        return [None] * len(bound), 0
    try:
        return problem.search(states)
    except TooManyCalls:
        hint = "give fewer facts, or have a need determine each argument of the tools with fill"
        raise PlanError(f"more than {MAX_CALLS:,} calls could be filled in", hint=hint) from None
    except NoFill as error:
        raise no_fill_error(plan, problem, error, states) from None


def _numbered(
    moves: _Moves, bound: Sequence[BoundStep], first: int
) -> tuple[list[BoundStep], tuple[int, ...]]:
    """All steps in order, and the numbers of the new ones.

    They are numbered one by one from the first number of the plan, if there are new ones.
    """
    if all(move is None for move in moves):
        return list(bound), ()
    first = bound[0].step.number if bound else first
    places = [place for place, move in enumerate(moves) if move is None]
    numbers = {each.step.number: first + place for each, place in zip(bound, places, strict=True)}
    steps, inserted, own = list[BoundStep](), list[int](), iter(bound)
    for place, move in enumerate(moves):
        number = first + place
        if move is None:
            each = next(own)
            steps.append(replace(each, step=renumber_step(each.step, numbers)))
            continue
        following = next((first + later for later in places if later > place), None)
        whom = "the goals" if following is None else f"step {following}"
        call = move.call
        step = PlanStep(
            number, call.facts.name, call.arguments, thought=f"inserted by the rehearsal for {whom}"
        )
        steps.append(BoundStep(step, call.facts, call.bindings))
        inserted.append(number)
    return steps, tuple(inserted)


def _results(plan: Plan, moves: _Moves, steps: Sequence[PlanStep]) -> tuple[Ref, ...]:
    """The references of the join: those of the plan, none of them to an inserted step."""
    own = [step.number for step, move in zip(steps, moves, strict=True) if move is None]
    numbers = {old.number: new for old, new in zip(plan.steps, own, strict=True)}
    if plan.results or len(own) == len(steps):
        return tuple(renumber_ref(ref, numbers) for ref in plan.results)
    return tuple(map(Ref, own))
