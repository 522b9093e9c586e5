"""A plan is found again in the calls that a run made of it, one after the other."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.planner.plan import Plan, PlanStep, Ref
from weft.planner.regroup import RegroupedPlan, ToolCallRecord, regroup, training_turns
from weft.planner.text.reader import read
from weft.planner.text.writer import write


def call(tool: str, result: Any, effect: Any = "pure", **arguments: Any) -> ToolCallRecord:
    return ToolCallRecord(tool, arguments, result, effect)


def edges(made: RegroupedPlan) -> set[tuple[int, int]]:
    return {(other, step) for step, needed in made.needs.items() for other in needed}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Steps whose arguments refer to fields of earlier results, or are words of their own."""
    steps = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        before = st.integers(1, number - 1) if number > 1 else st.nothing()
        ref = st.builds(Ref, before, st.sampled_from([("name",), ("size",), ("all", 1)]))
        own = st.integers(0, 99).map(lambda n, at=number: f"own word {at}-{n}")
        value = st.one_of(ref, own) if number > 1 else own
        arguments = draw(
            st.dictionaries(
                st.sampled_from("abc"), value | st.lists(value, max_size=2).map(tuple), max_size=3
            )
        )
        steps.append(PlanStep(number, f"tool_{number % 3}", arguments))
    return Plan(tuple(steps))


def result_of(number: int) -> dict[str, Any]:
    """A result whose values occur nowhere else, and contain none of one another."""
    return {
        "name": f"thing<{number}>",
        "size": 1000 + number,
        "all": [f"[{number}]a", f"[{number}]b"],
    }


def resolved(value: Any) -> Any:
    if isinstance(value, Ref):
        found: Any = result_of(int(value.source))
        for key in value.path:
            found = found[key]
        return found
    return [resolved(each) for each in value] if isinstance(value, tuple) else value


@examples(150)
@given(plans())
def test_the_references_of_a_plan_are_found_again(plan: Plan) -> None:
    calls = [
        call(
            step.tool, result_of(step.number), **{k: resolved(v) for k, v in step.arguments.items()}
        )
        for step in plan.steps
    ]
    made = regroup("What is it?", calls)
    assert edges(made) == {(other, step.number) for step in plan.steps for other in step.needs}
    assert [dict(step.arguments) for step in made.plan.steps] == [
        dict(step.arguments) for step in plan.steps
    ]
    assert not made.ambiguities
    text = write(made.plan)
    assert write(read(text)) == text


def test_what_the_question_or_the_model_said_comes_from_no_result() -> None:
    calls = [
        call("find", {"city": "Lisbon", "river": "Tagus"}, city="Lisbon"),
        call("weather", {"sky": "blue"}, place="Tagus"),
        call("people", 500_000, city="Lisbon"),
    ]
    made = regroup("How is the weather at the Tagus?", calls)
    assert edges(made) == set()
    assert made.levels == [[1, 2, 3]]
    assert edges(regroup("How is the weather there?", calls)) == {(1, 2)}


def test_a_part_of_a_text_and_a_number_inside_of_one_make_a_step_wait() -> None:
    calls = [
        call("look_up", {"text": "It has 331,000,000 people."}),
        call("look_up", {"name": "Ada Lovelace"}),
        call("halve", 165_500_000, number=331_000_000),
        call("search", [], query="the life of Ada Lovelace"),
        call("search", [], query="Ada"),
    ]
    made = regroup("", calls)
    assert edges(made) == {(1, 3), (2, 4)}
    assert made.plan.steps[2].arguments == {"number": 331_000_000}
    assert [(each.step, each.referred) for each in made.ambiguities] == [(3, False), (4, False)]
    assert str(made.ambiguities[0]) == (
        "step 3, number = 331000000: may be $1.text; stays as it was"
    )


def test_values_that_occur_by_chance_are_listed_and_waited_for() -> None:
    calls = [
        call("check", {"ok": True, "count": 1}),
        call("check", {"ok": False, "count": 1}),
        call("show", "", wide=True, lines=1, title="none"),
    ]
    made = regroup("", calls)
    assert edges(made) == {(1, 3), (2, 3)}
    assert made.plan.steps[2].arguments == {"wide": True, "lines": 1, "title": "none"}
    assert [each.place for each in made.ambiguities] == ["wide", "lines"]
    assert made.ambiguities[1].sources == (Ref(1, ("count",)), Ref(2, ("count",)))


def test_effects_that_happen_once_keep_their_order() -> None:
    calls = [
        call("pay", "paid", "once", to="Ada"),
        call("price", 100),
        call("pay", "sent", "once", to="Bob"),
    ]
    made = regroup("", calls)
    assert edges(made) == {(1, 3)}
    assert made.levels == [[1, 2], [3]]


def test_there_is_a_turn_for_each_level_with_the_results_before_it() -> None:
    calls = [call("a", {"x": "first value"}), call("b", 7_000), call("c", "", x="first value")]
    first, second = training_turns(regroup("Do it.", calls))
    assert [each["name"] for each in first["calls"]] == ["a", "b"]
    assert first["messages"] == [{"role": "user", "content": "Do it."}]
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "tool", "tool"]
    assert second["messages"][2]["content"] == {"x": "first value"}
    assert second["calls"] == [{"id": "call_3", "name": "c", "arguments": {"x": "first value"}}]


def test_no_calls_make_an_empty_plan() -> None:
    made = regroup("", [])
    assert (made.plan, made.levels, list(training_turns(made))) == (Plan(), [], [])
