"""What is handed from one round to the next."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from tests.planner.runnable import SPECS
from tests.planner.strategies import JSON
from weft.core.errors import Failure, PlanError
from weft.core.events import Outcome
from weft.core.values import Message, ToolSpec
from weft.planner.plan import PlanStep, Ref, StepCondition
from weft.planner.progress import infer_schema, progress_of, promised_schema, short_json
from weft.planner.prompt import repair_messages

BROKEN = Failure("ToolRaised", "out of order", "tool")
UPSTREAM = Failure("Upstream", "needs s1, which failed")
ANY = (ToolSpec("any", "Does anything.", {"type": "object"}),)


def step(number: int, *needs: int, tool: str = "any", **fields: Any) -> PlanStep:
    return PlanStep(number, tool, {f"a{need}": Ref(need) for need in needs}, **fields)


def ok(value: Any) -> Outcome:
    return Outcome("succeeded", value)


def test_each_step_is_in_its_place() -> None:
    steps = [step(1), step(2), step(3, 1), step(4, 3, 2), step(5, when=StepCondition(Ref(2)))]
    outcomes = {
        1: Outcome("failed", failure=BROKEN),
        2: ok({"n": 1}),
        3: Outcome("skipped", failure=UPSTREAM),
        4: Outcome("skipped", failure=UPSTREAM),
        5: Outcome("skipped"),
    }
    found = progress_of(steps, outcomes, ANY, "try again")
    assert [done.step.number for done in found.done] == [2]
    assert found.done[0].shown == '{"n": 1}'
    assert [(one.step.number, one.failure) for one in found.failed] == [(1, BROKEN)]
    assert [(one.step.number, one.by) for one in found.blocked] == [(3, (1,)), (4, (1,))]
    assert [one.number for one in found.left_out] == [5]
    assert (found.thought, found.next_number) == ("try again", 6)
    assert list(found.known) == [2]


def test_a_map_that_lost_the_items_of_a_failed_map_is_blocked_by_it() -> None:
    steps = [step(1, over=None), step(2, over=Ref(1))]
    half = Failure("JoinUnsatisfied", "2 of 3 branches succeeded, 3 needed: needs s1[2]")
    outcomes = {1: Outcome("failed", failure=BROKEN), 2: Outcome("failed", failure=half)}
    found = progress_of(steps, outcomes, ANY)
    assert [(one.step.number, one.by) for one in found.blocked] == [(2, (1,))]


def test_a_cancelled_step_has_failed() -> None:
    cancelled = Outcome("cancelled", failure=Failure("Cancelled", "too late"))
    assert progress_of([step(1)], {1: cancelled}, ANY).failed[0].failure.message == "too late"


def test_what_earlier_rounds_blocked_is_history() -> None:
    steps = [step(1), step(2, 1), step(3)]
    outcomes = {
        1: Outcome("failed", failure=BROKEN),
        2: Outcome("skipped", failure=UPSTREAM),
        3: ok(1),
    }
    found = progress_of(steps, outcomes, ANY, since=3)
    assert [one.step.number for one in found.failed] == [1]
    assert not found.blocked


def test_a_promised_schema_counts_more_than_what_came() -> None:
    known = progress_of([step(1, tool="spread"), step(2)], {1: ok([1]), 2: ok([True])}, SPECS).known
    assert known[1] == {"type": "array", "items": {"type": "integer"}}
    assert known[2] == {
        "type": "array",
        "items": {"type": "boolean"},
        "minItems": 1,
        "maxItems": 1,
    }


def test_a_map_promises_a_list() -> None:
    schema = promised_schema(step(2, tool="spread", over=Ref(1)), SPECS)
    assert schema == {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    assert promised_schema(step(1), SPECS) is None


@given(JSON)
def test_a_value_fits_the_schema_that_is_inferred_from_it(value: Any) -> None:
    plain = _plain(value)
    Draft202012Validator(dict(infer_schema(plain))).validate(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def test_what_is_large_is_described_less_exactly() -> None:
    assert infer_schema(list(range(1000))) == {"type": "array"}
    assert infer_schema({str(n): n for n in range(1000)}) == {"type": "object"}
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert len(str(infer_schema(deep))) < 1000
    wide: Any = 1
    for _ in range(4):
        wide = {str(n): wide for n in range(20)}
    schema = infer_schema(wide)
    assert len(str(schema)) < 20_000
    assert schema["properties"]["7"] == {"type": "object"}


@given(JSON)
def test_a_rendering_is_one_short_line(value: Any) -> None:
    text = short_json(value, 40)
    assert len(text) < 100
    assert "\n" not in text


def test_what_json_cannot_hold_is_named() -> None:
    circular: list[Any] = []
    circular.append(circular)
    assert short_json({(1, 2): 3}) == "a dict that JSON cannot hold"
    assert short_json(circular) == "a list that JSON cannot hold"
    assert infer_schema({(1, 2): 3}) == {"type": "object"}


def test_a_rendering_says_what_it_leaves_out() -> None:
    assert short_json("x" * 100, 20) == '"xxxxxxxxxxxxxx ...(82 characters left out)... xxxx"'


@pytest.mark.parametrize("begun", [(), (step(3),)])
def test_mending_says_what_is_wrong_and_where_to_go_on(begun: tuple[PlanStep, ...]) -> None:
    messages = (Message("system", "Plan."), Message("user", "What?"))
    error = PlanError("there is no tool 'x'", line=2, column=4, step=4)
    told = repair_messages(messages, "3. any()\n4. x()\n", error, begun)
    assert told[:2] == messages
    assert told[2] == Message("assistant", "3. any()\n4. x()\n")
    assert "plan:2:4: step 4: there is no tool 'x'" in told[3].content
    assert ("3. any()" in told[3].content) is bool(begun)
    assert ("beginning with number 4" in told[3].content) is bool(begun)
