"""The robot in the house: its size, what the house refuses, and errands that a model forgot."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.agents.tools.module import load_file
from weft.core.errors import ToolRaised
from weft.core.facts import parse_fact, parse_pattern
from weft.planner.plan import Plan
from weft.planner.rehearsal import rehearse
from weft.planner.text.reader import read

FOLDER = Path(__file__).parents[2] / "examples/house"
TOOLS: Any = load_file(FOLDER / "tools.py")
ERRANDS: Any = load_file(FOLDER / "errands.py")
BOX = [each for each in vars(TOOLS).values() if isinstance(each, weft.Tool)]
CALLS = {each.spec.name: each for each in BOX}


@pytest.fixture
def house() -> Any:
    TOOLS.HOUSE.restart()
    return TOOLS.HOUSE


def errands(house: Any) -> list[Any]:
    found: list[Any] = ERRANDS.errands(house.places, sorted(house.closed))
    return found


def carry_out(plan: Plan) -> None:
    """Make the calls of `plan` in any order that it allows. Raises: what the house refuses."""
    left, source = {step.number: step for step in plan.steps}, random.Random(len(plan.steps))
    while left:
        ready = [step for step in left.values() if left.keys().isdisjoint(step.needs)]
        step = left.pop(source.choice(ready).number)
        CALLS[step.tool](**step.arguments)


def test_the_house_is_as_large_as_it_says(house: Any) -> None:
    assert len(house.doors) == 36
    assert len(house.rooms) + len(house.places) == 140
    assert len(errands(house)) == 40
    assert len({fact.partition("(")[0] for fact in house.facts()}) == 7
    first = house.facts()
    house.restart()
    assert house.facts() == first
    house.restart(seed=8)
    assert house.facts() != first


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("goto", {"room": "room_3_3_3"}),
        ("goto", {"room": "corridor_1_1"}),
        ("approach", {"place": "nowhere"}),
        ("open", {"place": "fridge_1"}),
        ("close", {"place": "table_1"}),
        ("grasp", {"thing": "apple_1"}),
        ("put", {"thing": "apple_1", "place": "table_1"}),
        ("wash", {"thing": "apple_1"}),
    ],
)
def test_the_house_refuses_what_cannot_be_done(
    house: Any, tool: str, arguments: dict[str, str]
) -> None:
    before = house.facts()
    with pytest.raises(ToolRaised, match="Refused"):
        asyncio.run(weft.Toolbox(*BOX).call(tool, arguments))
    assert (house.facts(), house.calls, house.refused) == (before, 1, 1)


def test_whole_plans_of_all_errands_are_carried_out(house: Any) -> None:
    for errand in errands(house):
        house.restart()
        plan = read(ERRANDS.plan_text(ERRANDS.steps_of(errand, house)), [t.spec for t in BOX])
        carry_out(plan)
        assert set(errand.goals) <= set(house.facts()), errand.question
        assert house.refused == 0


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_what_a_plan_lacks_is_filled_in_and_the_house_refuses_nothing(
    house: Any, share: float
) -> None:
    source = random.Random(5)
    for errand in errands(house)[::3]:
        house.restart()
        steps = [s for s in ERRANDS.steps_of(errand, house) if source.random() < share]
        found = rehearse(
            read(ERRANDS.plan_text(steps), [t.spec for t in BOX]),
            [tool.spec for tool in BOX],
            map(parse_fact, house.facts()),
            list(map(parse_pattern, errand.goals)),
        )
        carry_out(found.plan)
        assert set(errand.goals) <= set(house.facts()), errand.question
        assert (house.calls, house.refused) == (len(found.plan.steps), 0)


def test_the_page_of_the_example_shows_what_its_command_prints() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    command = next(line for line in page.splitlines() if line.startswith("python "))
    run = subprocess.run(
        [sys.executable, *command.split()[1:]],
        cwd=FOLDER.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"```\n{run.stdout}```\n" in page
