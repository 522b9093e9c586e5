"""The rounds of an agent as one plan."""

from __future__ import annotations

from weft.agents.agent import Answer, Observation, merge_plans
from weft.core.errors import Failure
from weft.core.events import Outcome
from weft.planner.plan import Plan, PlanStep, Ref

BROKEN = Outcome("failed", failure=Failure("ToolRaised", "out of order"))
FINE = Outcome("succeeded", 1)
LEFT_OUT = Outcome("skipped")


def step(number: int, tool: str, *needs: int) -> PlanStep:
    return PlanStep(number, tool, {f"a{place}": Ref(need) for place, need in enumerate(needs)})


def answer(*plans: Plan, outcomes: dict[int, Outcome]) -> Answer:
    calls = tuple(Observation(number, "t", {}, outcome) for number, outcome in outcomes.items())
    return Answer("yes", calls, len(plans), plans)


def test_what_failed_is_left_away_and_what_is_needed_stays() -> None:
    first = Plan((step(1, "a"), step(2, "b", 1), step(3, "unused")), (Ref(2),))
    second = Plan((step(4, "c", 1),), (Ref(4, ("x",)),))
    found = merge_plans(
        answer(first, second, outcomes={1: FINE, 2: BROKEN, 3: FINE, 4: FINE}),
    )
    assert found == Plan((step(1, "a"), step(4, "c", 1)), (Ref(4, ("x",)),))


def test_a_step_that_was_planned_again_is_the_old_one() -> None:
    first = Plan((step(1, "a"), step(2, "b", 1)), (Ref(2),))
    second = Plan((step(3, "a"), step(4, "b", 3)), (Ref(4), Ref(3)))
    found = merge_plans(answer(first, second, outcomes={1: FINE, 2: BROKEN, 3: FINE, 4: FINE}))
    assert found == Plan((step(1, "a"), step(4, "b", 1)), (Ref(4), Ref(1)))


def test_a_number_that_was_used_again_means_its_last_step() -> None:
    first, second = Plan((step(1, "a"), step(2, "b", 1))), Plan((step(2, "c", 1),), (Ref(2),))
    calls = [(1, FINE), (2, BROKEN), (2, FINE)]
    seen = tuple(Observation(number, "t", {}, outcome) for number, outcome in calls)
    found = merge_plans(Answer("yes", seen, 2, (first, second)))
    assert found == Plan((step(1, "a"), step(2, "c", 1)), (Ref(2),))


def test_equal_steps_of_one_plan_stay_two() -> None:
    plan = Plan((step(1, "roll"), step(2, "roll")))
    assert merge_plans(answer(plan, outcomes={1: FINE, 2: FINE})) == plan


def test_what_a_condition_left_out_stays() -> None:
    plan = Plan((step(1, "a"), step(2, "b", 1)), (Ref(1), Ref(2)))
    assert merge_plans(answer(plan, outcomes={1: FINE, 2: LEFT_OUT})) == plan


def test_results_that_failed_are_dropped() -> None:
    plan = Plan((step(1, "a"), step(2, "b", 1)), (Ref(2),))
    assert merge_plans(answer(plan, outcomes={1: FINE, 2: BROKEN})) == Plan((step(1, "a"),))


def test_an_answer_without_plans_is_the_empty_plan() -> None:
    assert merge_plans(Answer("yes")) == Plan()
