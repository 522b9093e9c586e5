"""Agents that rehearse: no call before the whole plan can run; facts follow the rounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.planner.rehearsal.kitchen import FACTS
from weft.agents.agent import AgentOptions, Answer, run_agent
from weft.agents.loops import check_options, make_agent
from weft.core.errors import AgentError, BuildError
from weft.core.events import NodeLogged, NodeStreamed
from weft.planner.rehearsal import RehearsalOptions
from weft.planner.text.writer import write
from weft.testing import FakeModel

DONE = '{"thought": "", "next": {"answer": "done"}}'
AGAIN = '{"thought": "", "next": {"replan": "the rest"}}'


class Robot:
    """Tools that record what they are called with; `jam` fails once."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.jammed = True

        @weft.tool(
            needs=["at(?here)", "next(?here, {room})"],
            makes=["not at(*)", "at({room})"],
            fill=True,
        )
        async def goto(room: str) -> str:
            self.calls.append(("goto", room))
            await asyncio.sleep(0)
            return room

        @weft.tool(needs=["at(kitchen)"], makes=["not closed({place})"], fill=True)
        def open(place: str) -> str:  # noqa: A001
            self.calls.append(("open", place))
            return place

        @weft.tool(needs=["not closed(fridge)", "at(kitchen)"], makes=["holding({thing})"])
        def grasp(thing: str) -> str:
            self.calls.append(("grasp", thing))
            return thing

        @weft.tool(needs=["at(attic)"], makes=["fixed"])
        def fix() -> str:
            self.calls.append(("fix",))
            self.jammed, failed = False, self.jammed
            if failed:
                raise ValueError("it is jammed")
            return "fixed"

        @weft.tool
        def look(what: str) -> str:
            self.calls.append(("look", what))
            return "kitchen"

        self.tools = [goto, open, grasp, fix, look]


def ask(robot: Robot, *replies: str, **given: Any) -> Answer:
    asked = {"facts": FACTS, **given}
    return weft.ask_sync("q", tools=robot.tools, model=FakeModel(list(replies)), **asked)


def test_the_plan_is_filled_in_and_its_calls_are_made_in_order() -> None:
    robot = Robot()
    answer = ask(robot, '1. grasp(thing="apple")\n2. fix()\n3. join($1)\n', DONE, goals=["fixed"])
    assert robot.calls[:5] == [
        ("goto", "kitchen"),
        ("open", "fridge"),
        ("grasp", "apple"),
        ("goto", "hall"),
        ("goto", "attic"),
    ]
    assert robot.calls[5:] == [("fix",)]
    assert "# inserted by the rehearsal for step 3\n1. goto" in write(answer.plans[0])


def test_a_plan_that_cannot_run_is_written_again_and_nothing_was_called() -> None:
    robot = Robot()
    model = FakeModel(
        ['1. goto(room="moon")\n2. join()\n', '1. goto(room="kitchen")\n2. join()\n', DONE]
    )
    weft.ask_sync("q", tools=robot.tools, model=model, facts=FACTS)
    assert robot.calls == [("goto", "kitchen")]
    repair = model.requests[1].messages[-1].content
    assert "goto needs next(hall, moon), which does not hold then" in repair
    assert "Write the whole plan again." in repair


def test_two_plans_that_cannot_run_end_the_agent_without_a_call() -> None:
    robot = Robot()
    with pytest.raises(AgentError, match=r"needs next\(hall, moon\)"):
        ask(robot, '1. look(what="x")\n2. goto(room="moon")\n3. join()\n')
    assert robot.calls == []


def test_facts_follow_what_succeeded_and_a_call_may_be_made_again() -> None:
    robot = Robot()
    answer = ask(
        robot,
        '1. goto(room="attic")\n2. fix()\n3. join()\n',
        AGAIN,
        '3. goto(room="hall")\n4. goto(room="attic")\n5. fix()\n6. join()\n',
        DONE,
    )
    assert robot.calls == [
        ("goto", "attic"),
        ("fix",),
        ("goto", "hall"),
        ("goto", "attic"),
        ("fix",),
    ]
    assert answer.rounds == 2
    assert answer.plans[1].steps[0].number == 3


def test_a_result_of_an_earlier_plan_is_a_value() -> None:
    robot = Robot()
    ask(robot, '1. look(what="apple")\n2. join()\n', AGAIN, "2. goto(room=$1)\n3. join()\n", DONE)
    assert robot.calls == [("look", "apple"), ("goto", "kitchen")]


def test_the_prompt_has_the_facts_the_goals_and_what_tools_declare() -> None:
    model = FakeModel(["1. join()\n", DONE])
    weft.ask_sync("q", tools=Robot().tools, model=model, facts=FACTS, goals=["at(hall)"])
    prompt = model.requests[0].messages[-1].content
    assert "These facts hold, and no others:\nat(hall), closed(fridge), " in prompt
    assert "After the plan these have to hold: at(hall)" in prompt
    assert "needs at(?here), next(?here, {room})" in prompt
    assert "may be left out: it is filled in where a later call needs it" in prompt


def test_the_agent_plan_shows_the_rehearsed_plan() -> None:
    robot = Robot()
    answer = ask(robot, '1. grasp(thing="apple")\n2. join($1)\n', agent="plan")
    assert answer.value == write(answer.plans[0])
    assert answer.value.count("# inserted by the rehearsal for step 3") == 2
    assert robot.calls == []


def test_what_was_changed_is_logged_and_shown() -> None:
    robot, events = Robot(), list[Any]()
    options = AgentOptions(rehearsal=RehearsalOptions(FACTS))
    tools = weft.Toolbox(*robot.tools)
    model = FakeModel(['1. grasp(thing="apple")\n2. join($1)\n', DONE])
    agent = make_agent("compiler", tools, model, options)
    asyncio.run(run_agent(agent, "q", listeners=[events.append]))
    logged = [event.text for event in events if isinstance(event, NodeLogged)]
    assert any("the rehearsal inserted 2 steps and gave an order to 2 steps" in t for t in logged)
    shown = "".join(event.text for event in events if isinstance(event, NodeStreamed))
    assert "# inserted by the rehearsal for step 3" in shown


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"agent": "react"}, "the agent 'react' writes no plan to rehearse"),
        ({"facts": ["not at(hall)"]}, "what is not listed does not hold"),
        ({"facts": "at(hall)"}, "no fact: a name is expected|`facts` is one text"),
        ({"goals": ["at({room})"]}, "has the parameter"),
        ({"goals": ["at(hall, 2)"]}, "has 2 arguments, and 1 in the tools"),
        ({"goals": ["fixd"]}, "did you mean 'fixed'"),
    ],
)
def test_facts_and_goals_that_do_not_fit_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises((BuildError, AgentError), match=why):
        ask(Robot(), "1. join()\n", DONE, **given)


def test_tools_without_facts_cannot_be_rehearsed() -> None:
    with pytest.raises((BuildError, AgentError), match="no tool declares any"):
        weft.ask_sync("q", tools=[Robot().tools[-1]], model=FakeModel([DONE]), facts=["dark"])


def test_options_say_what_they_cannot_be() -> None:
    check_options("plan", AgentOptions(rehearsal=RehearsalOptions(["dark"])))
    with pytest.raises(BuildError, match="at least one state"):
        RehearsalOptions(states=0)
    with pytest.raises(BuildError, match="more than 10,000"):
        RehearsalOptions(["dark"] * 10_001)
    with pytest.raises(BuildError, match="which is no text"):
        RehearsalOptions([{"at": "hall"}])  # type: ignore[list-item]
