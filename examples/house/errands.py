"""Forty errands in the house: `python examples/house/errands.py [NUMBER] [--given SHARE]`.

The model is scripted: it writes the whole plan of an errand, or leaves steps out, as small models
do. The rehearsal fills in what is missing, and the robot runs the plan.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Step = tuple[str, dict[str, str]]
"""A call: the tool, and its arguments."""


@dataclass(frozen=True)
class Errand:
    """What to do in words and as facts, and the jobs that come to it."""

    question: str
    goals: tuple[str, ...]
    jobs: tuple[Step, ...]


def errands(places: Mapping[str, str], containers: Sequence[str], seed: int = 1) -> list[Errand]:
    """Forty errands about things at `places`: bring, put away and close, wash, bring two."""
    rng = random.Random(seed)  # noqa: S311
    things, furniture = sorted(places), sorted({*places.values()})
    found = []
    for number in range(40):
        thing, other = rng.sample(things, 2)
        place = rng.choice([each for each in furniture if each != places[thing]])
        match number % 4:
            case 0:
                found.append(_bring(thing, place))
            case 1:
                found.append(_put_away(thing, rng.choice(containers)))
            case 2:
                found.append(_wash(thing, place))
            case _:
                found.append(_bring_both(thing, other, place))
    return found


def _bring(thing: str, place: str) -> Errand:
    jobs = (("grasp", {"thing": thing}), ("put", {"thing": thing, "place": place}))
    return Errand(f"Bring {thing} to {place}.", (f"on({thing}, {place})",), jobs)


def _put_away(thing: str, place: str) -> Errand:
    jobs = (*_bring(thing, place).jobs, ("close", {"place": place}))
    goals = (f"on({thing}, {place})", f"closed({place})")
    return Errand(f"Put {thing} into {place} and close it.", goals, jobs)


def _wash(thing: str, place: str) -> Errand:
    take, put = _bring(thing, place).jobs
    goals = (f"clean({thing})", f"on({thing}, {place})")
    return Errand(
        f"Wash {thing} and bring it to {place}.", goals, (take, ("wash", {"thing": thing}), put)
    )


def _bring_both(one: str, other: str, place: str) -> Errand:
    jobs = (*_bring(one, place).jobs, *_bring(other, place).jobs)
    goals = (f"on({one}, {place})", f"on({other}, {place})")
    return Errand(f"Bring {one} and {other} to {place}.", goals, jobs)


def steps_of(errand: Errand, house: Any) -> list[Step]:
    """All calls that carry out `errand`, beginning with `house` as it is."""
    robot = _Walk(house)
    for tool, arguments in errand.jobs:
        match tool:
            case "grasp" if arguments["thing"] == robot.holding:
                continue
            case "grasp":
                robot.reach(robot.places[arguments["thing"]])
            case "wash":
                robot.reach(min(house.sinks))
            case _:
                robot.reach(arguments["place"], shut=tool == "close")
        robot.do(tool, arguments)
    return robot.steps


class _Walk:
    """Writes down the ways and the doors between the jobs of an errand."""

    def __init__(self, house: Any) -> None:
        self._house = house
        self._room, self._near = house.room, house.near
        self._closed = set(house.closed)
        self.places, self.holding = dict(house.places), house.holding
        self.steps: list[Step] = []

    def do(self, tool: str, arguments: dict[str, str]) -> None:
        self.steps.append((tool, arguments))
        if tool == "grasp":
            self.holding = arguments["thing"]
        elif tool == "put":
            self.places[arguments["thing"]], self.holding = arguments["place"], None

    def reach(self, place: str, *, shut: bool = False) -> None:
        for room in self._way(self._house.rooms[place]):
            self.do("goto", {"room": room})
            self._room, self._near = room, None
        if self._near != place:
            self.do("approach", {"place": place})
            self._near = place
        if place in self._closed and not shut:
            self.do("open", {"place": place})
            self._closed.remove(place)

    def _way(self, goal: str) -> list[str]:
        """The rooms from here to `goal`, the nearest first."""
        ways: dict[str, list[str]] = {self._room: []}
        open_rooms = [self._room]
        for room in open_rooms:  # it grows meanwhile: the nearest rooms come first
            for door in self._house.doors[room]:
                if door not in ways:
                    ways[door] = [*ways[room], door]
                    open_rooms.append(door)
        return ways[goal]


def plan_text(steps: Sequence[Step]) -> str:
    """The plan of these calls, one after the other."""
    lines = []
    for number, (tool, arguments) in enumerate(steps, 1):
        given = ", ".join(f'{name}="{value}"' for name, value in arguments.items())
        after = f" after ${number - 1}" if number > 1 else ""
        lines.append(f"{number}. {tool}({given}){after}\n")
    return "".join([*lines, f"{len(steps) + 1}. join()\n"])


def main() -> None:
    """Do one errand with a model that forgets steps."""
    import tools

    import weft
    from weft.testing import FakeModel

    house = tools.HOUSE
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", nargs="?", type=int, default=1, help="1 to 40; 1")
    parser.add_argument("--given", type=float, default=0.3, help="the share of steps written; 0.3")
    given = parser.parse_args()
    errand = errands(house.places, sorted(house.closed))[given.number - 1]
    steps = steps_of(errand, house)
    rng = random.Random(given.number)  # noqa: S311
    plan = plan_text([step for step in steps if rng.random() < given.given])
    print(f"{errand.question}\n\nThe model's plan:\n{plan}")
    answer = weft.ask_sync(
        errand.question,
        tools=[each for each in vars(tools).values() if isinstance(each, weft.Tool)],
        model=FakeModel([plan, '{"thought": "", "next": {"answer": "done"}}']),
        facts=house.facts(),
        goals=errand.goals,
    )
    print("The calls that were made:")
    for call in answer.calls:
        named = ", ".join(call.arguments.values())
        print(f"{call.number}. {call.tool}({named}): {call.outcome.value}")
    reached = set(errand.goals) <= set(house.facts())
    print(f"\n{house.calls} calls, {house.refused} refused; errand done: {reached}")


if __name__ == "__main__":
    main()
