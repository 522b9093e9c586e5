"""The search for calls to fill in: its estimate, its limits, and a larger world."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.rehearsal.kitchen import GOTO, GRASP, PUT, spec
from tests.profile import examples
from weft.core.facts import parse_fact, parse_pattern
from weft.planner.plan import Plan
from weft.planner.rehearsal import rehearse
from weft.planner.rehearsal.grounding import ground_calls
from weft.planner.rehearsal.literals import StateChange
from weft.planner.rehearsal.search import FillAction, RelaxedPlan
from weft.planner.rehearsal.tool_facts import tool_facts
from weft.planner.rehearsal.world import World

ACTIONS = st.lists(
    st.builds(
        lambda needs, adds, removes: FillAction(None, needs, StateChange(adds, removes & ~adds)),  # type: ignore[arg-type]
        *[st.integers(0, 31)] * 3,
    ),
    max_size=6,
)


def shortest(actions: list[FillAction], state: int, target: int) -> int | None:
    """The length of a shortest way that ignores what calls undo, by breadth-first search."""
    todo, length = {state}, {state: 0}
    while todo:
        reached = min(todo, key=lambda each: length[each])
        todo.remove(reached)
        if reached & target == target:
            return length[reached]
        for action in actions:
            after = reached | action.change.adds
            if reached & action.needs == action.needs and after not in length:
                length[after] = length[reached] + 1
                todo.add(after)
    return None


@given(ACTIONS, st.integers(0, 31), st.integers(0, 31))
@examples(300)
def test_the_estimate_is_a_way_that_ignores_what_calls_undo(
    actions: list[FillAction], state: int, target: int
) -> None:
    estimate, best = RelaxedPlan(actions).length(state, [target]), shortest(actions, state, target)
    assert (estimate is None) == (best is None)
    if estimate is not None and best is not None:
        assert best <= estimate <= len(actions)


def test_only_calls_that_may_help_are_considered() -> None:
    facts = [f"next(r{a}, r{a + 1})" for a in range(5)] + ["at(r0)"]
    facts += [f"on(t{number}, p)" for number in range(50)] + ["inside(p, r1)", "inside(q, r2)"]
    tools = [tool_facts(each) for each in (GOTO, GRASP, PUT)]
    wanted = [parse_pattern("on(t7, q)")]
    calls = ground_calls(
        World(map(parse_fact, facts)), [each for each in tools if each], wanted, []
    )
    things = {call.arguments.get("thing") for call in calls} - {None}
    assert things == {"t7"}
    assert {call.facts.name for call in calls} == {"goto", "grasp", "put"}


@pytest.mark.parametrize("length", [1, 12])
def test_a_long_way_takes_few_states(length: int) -> None:
    facts = [f"next(r{a}, r{b})" for a in range(60) for b in (a - 1, a + 1) if 0 <= b < 60]
    goal = parse_pattern(f"at(r{30 + length})")
    found = rehearse(Plan(), [GOTO], map(parse_fact, [*facts, "at(r30)"]), [goal])
    assert [step.arguments["room"] for step in found.plan.steps] == [
        f"r{30 + each}" for each in range(1, length + 1)
    ]
    assert found.states <= 3 * length + 2


def test_switches_that_do_not_matter_are_left_alone() -> None:
    """Two to the power of forty worlds, of which only those on the way are seen."""
    toggle = spec("toggle", "lamp", needs=["lamp({lamp})"], makes=["lit({lamp})"], fill=True)
    read = spec("read", needs=["lit(l3)", "lit(l31)"])
    facts = [parse_fact(f"lamp(l{number})") for number in range(40)]
    from weft.planner.text.reader import read as read_plan

    found = rehearse(read_plan("1. read()\n2. join()\n", (toggle, read)), (toggle, read), facts)
    assert {step.arguments.get("lamp") for step in found.plan.steps[:2]} == {"l3", "l31"}
    assert found.states < 10
