"""Random tiny worlds: a fill is found exactly where exhaustive search finds one, and it runs."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.planner.rehearsal.tiny_worlds import TinyWorld, all_orders, orders, tiny_worlds
from tests.profile import examples
from weft.core.errors import PlanError
from weft.core.facts import parse_fact, parse_pattern
from weft.planner.plan import Plan, PlanStep
from weft.planner.rehearsal import RehearsedPlan, facts_after, rehearse
from weft.planner.text.reader import read
from weft.planner.text.writer import write


def rehearsed(world: TinyWorld, plan: Plan | None = None) -> RehearsedPlan | None:
    """`world` rehearsed; None where it is refused."""
    try:
        return rehearse(
            world.plan if plan is None else plan,
            [tool.spec for tool in world.tools],
            map(parse_fact, world.facts),
            [parse_pattern(str(goal)) for goal in world.goals],
        )
    except PlanError:
        return None


def calls(steps: list[PlanStep] | tuple[PlanStep, ...]) -> list[tuple[str, str]]:
    return [(step.tool, step.arguments.get("x", "a")) for step in steps]


@given(tiny_worlds())
@examples(400)
def test_there_is_a_fill_exactly_where_exhaustive_search_finds_one(world: TinyWorld) -> None:
    assert (rehearsed(world) is not None) == world.can_be_filled()


@given(tiny_worlds())
@examples(400)
def test_every_order_that_the_steps_allow_runs(world: TinyWorld) -> None:
    found = rehearsed(world)
    if found is not None:
        for order in orders(found.plan):
            assert world.runs(calls(order)), write(found.plan)


@given(tiny_worlds())
@examples(400)
def test_the_steps_of_the_plan_stay_in_their_order(world: TinyWorld) -> None:
    found = rehearsed(world)
    if found is not None:
        kept = [step for step in found.plan.steps if step.number not in found.inserted]
        assert calls(kept) == calls(world.plan.steps)
        fillers = {tool.name for tool in world.tools if tool.fill}
        inserted = [step for step in found.plan.steps if step.number in found.inserted]
        assert {step.tool for step in inserted} <= fillers


@given(tiny_worlds())
@examples(300)
def test_a_plan_that_runs_is_not_filled_and_a_rehearsed_one_stays(world: TinyWorld) -> None:
    found = rehearsed(world)
    if world.runs(calls(world.plan.steps)):
        assert found is not None
        assert found.inserted == ()
    if found is not None:
        again = rehearsed(world, found.plan)
        assert again is not None
        assert again.plan == found.plan
        assert (again.inserted, again.ordered, again.states) == ((), (), 0)


@given(tiny_worlds())
@examples(300)
def test_a_rehearsed_plan_is_read_as_it_was_written(world: TinyWorld) -> None:
    found = rehearsed(world)
    if found is not None:
        specs = [tool.spec for tool in world.tools]
        assert read(write(found.plan), specs) == found.plan


@given(tiny_worlds())
@examples(300)
def test_the_facts_after_a_plan_are_those_of_the_oracle(world: TinyWorld) -> None:
    found = rehearsed(world)
    if found is not None:
        specs = [tool.spec for tool in world.tools]
        after = facts_after(found.plan.steps, specs, map(parse_fact, world.facts))
        state = world.start
        for name, x in calls(found.plan.steps):
            state = world.tool(name).run(state, x)
        assert {(fact.name, "".join(fact.arguments)) for fact in after} == state


@pytest.mark.parametrize("after", [(), (1,), (1, 2)])
def test_the_orders_of_a_plan_are_all_those_that_keep_after(after: tuple[int, ...]) -> None:
    steps = [PlanStep(1, "f"), PlanStep(2, "f"), PlanStep(3, "f", after=after)]
    allowed = [
        order
        for order in all_orders(steps)
        if all(order.index(steps[number - 1]) < order.index(steps[2]) for number in after)
    ]
    found = list(orders(Plan(tuple(steps))))
    assert len(found) == len(allowed)
    assert all(order in found for order in allowed)
