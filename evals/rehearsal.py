"""`python -m evals.rehearsal [--quick] [--json FILE]`: plans that run after a rehearsal.

Forty errands in the house of `examples/house`, whose tools refuse what cannot be done. A scripted
model writes the plan of an errand and leaves out a share of its steps, drawn by errand and seed;
where an agent plans again, it does so from the house as it is then. `way` leaves out steps that
lead to a job (goto, approach, open, close), `any` the jobs as well (grasp, put, wash).

    as_written      the plan as it is, its steps one after the other
    rehearsed       the facts of the house are given
    with_goals      and what has to hold after the errand

A plan is executable if every call of it is carried out by the house, and none is refused. Measures
the rehearsal, never a model's skill.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.results import REPOSITORY, environment, title, write_results
from weft.agents.agent import AgentOptions
from weft.agents.tools.module import load_file
from weft.core.errors import WeftError
from weft.core.ports.model import ModelRequest
from weft.testing import FakeModel

SHARES: Final = (0.1, 0.3, 0.5)
SEEDS: Final = 1
ROUNDS: Final = 8
SYSTEMS: Final = ("as_written", "rehearsed", "with_goals")
WAY: Final = frozenset(("goto", "approach", "open", "close"))

_FOLDER: Final = REPOSITORY / "examples/house"
_TOOLS: Final = load_file(_FOLDER / "tools.py")
_ERRANDS: Final = load_file(_FOLDER / "errands.py")
_NUMBER: Final = re.compile(r"beginning with number (\d+)")
_PLANNER: Final = "You write a plan"
_NO_MORE: Final = "Nothing more can be planned"


@dataclass(frozen=True, slots=True)
class ErrandResult:
    """What came of one errand. `first`: of its first plan alone.

    `executable`: the first plan ran, and no call of it was refused; `first_done`: it reached the
    goals. `planned`, `joined`: model calls.
    """

    executable: bool
    first_done: bool
    done: bool
    planned: int
    joined: int
    calls: int
    refused: int
    inserted: int


@dataclass(slots=True)
class ForgetfulModel:
    """Scripts a model that plans an errand, leaves out steps, and knows whether it is done."""

    errand: Any
    share: float
    droppable: frozenset[str] | None
    rng: random.Random
    planned: int = 0
    joined: int = 0
    first: tuple[bool, bool] | None = field(default=None)

    def reply(self, request: ModelRequest) -> str | dict[str, Any]:
        """The next reply: a plan, or whether the errand is done."""
        if request.messages[0].content.startswith(_PLANNER):
            self.planned += 1
            return self._plan(request)
        self.joined += 1
        house, reached = _TOOLS.HOUSE, done(self.errand)
        if self.first is None:
            self.first = (self.planned == 1 and not house.refused, reached)
        last = _NO_MORE in request.messages[-1].content
        if reached or last:
            return {"thought": "", "next": {"answer": "done" if reached else "not done"}}
        return {"thought": "", "next": {"replan": "carry out the rest"}}

    def _plan(self, request: ModelRequest) -> str:
        asked = _NUMBER.findall(request.messages[-1].content)
        steps = _ERRANDS.steps_of(self.errand, _TOOLS.HOUSE)
        return plan_text(self._kept(steps), int(asked[-1]) if asked else 1)

    def _kept(self, steps: Sequence[Any]) -> list[Any]:
        """`steps` without the share of those that may be left out, one at least."""
        places = [
            place
            for place, (tool, _) in enumerate(steps)
            if self.droppable is None or tool in self.droppable
        ]
        dropped = set(
            self.rng.sample(places, min(len(places), max(1, round(self.share * len(places)))))
        )
        return [step for place, step in enumerate(steps) if place not in dropped]


def plan_text(steps: Sequence[Any], first: int) -> str:
    """The plan of `steps`, one after the other, numbered from `first`."""
    lines = []
    for number, (tool, arguments) in enumerate(steps, first):
        given = ", ".join(f'{name}="{value}"' for name, value in arguments.items())
        after = f" after ${number - 1}" if number > first else ""
        lines.append(f"{number}. {tool}({given}){after}\n")
    return "".join([*lines, f"{first + len(steps)}. join()\n"])


def done(errand: Any) -> bool:
    """Whether the goals of `errand` hold in the house."""
    return set(errand.goals) <= set(_TOOLS.HOUSE.facts())


def errands() -> list[Any]:
    """The errands in the house as it is at first."""
    _TOOLS.HOUSE.restart()
    house = _TOOLS.HOUSE
    found: list[Any] = _ERRANDS.errands(house.places, sorted(house.closed))
    return found


async def run_errand(errand: Any, system: str, model: ForgetfulModel) -> ErrandResult:
    """Have `weft.ask` do `errand` in a fresh house."""
    house = _TOOLS.HOUSE
    house.restart()
    facts = () if system == "as_written" else house.facts()
    goals = errand.goals if system == "with_goals" else ()
    plans: Sequence[Any] = ()
    try:
        answer = await weft.ask(
            errand.question,
            tools=[each for each in vars(_TOOLS).values() if isinstance(each, weft.Tool)],
            model=FakeModel(model.reply),
            options=AgentOptions(rounds=ROUNDS, calls=1_000),
            facts=facts,
            goals=goals,
        )
        plans = answer.plans
    except WeftError:  # no answer after all rounds, or a plan that its rehearsal refuses twice
        pass
    executable, first_done = model.first or (False, False)
    steps = plans[0].steps if plans else ()
    return ErrandResult(
        executable,
        first_done,
        done(errand),
        model.planned,
        model.joined,
        house.calls,
        house.refused,
        sum(step.thought.startswith("inserted") for step in steps),
    )


def measured(case: str, system: str, results: Sequence[ErrandResult]) -> Iterator[Row]:
    """The rows of one system on one case."""

    def share(name: str) -> float:
        return fmean(bool(getattr(each, name)) for each in results)

    def mean(name: str) -> float:
        return fmean(getattr(each, name) for each in results)

    yield Row(case, system, "plans", len(results), "plans")
    yield Row(case, system, "executable", share("executable"), "share")
    yield Row(case, system, "done_by_first_plan", share("first_done"), "share")
    yield Row(case, system, "done", share("done"), "share")
    yield Row(case, system, "refused_calls", sum(each.refused for each in results), "calls")
    yield Row(case, system, "plans_written", mean("planned"), "plans")
    yield Row(case, system, "model_calls", mean("planned") + mean("joined"), "calls")
    yield Row(case, system, "inserted_steps", mean("inserted"), "steps")


async def rows_of(errand_list: Sequence[Any], seeds: Iterable[int]) -> list[Row]:
    """Every system on every case, and the model calls that a rehearsal saves."""
    found: list[Row] = []
    for kind, droppable in (("way", WAY), ("any", None)):
        for share in SHARES:
            case, means = f"{kind}_{share:.0%}", dict[str, float]()
            for system in SYSTEMS:
                results = [
                    await run_errand(
                        errand,
                        system,
                        ForgetfulModel(errand, share, droppable, random.Random(f"{seed} {number}")),
                    )
                    for seed in seeds
                    for number, errand in enumerate(errand_list)
                ]
                rows = list(measured(case, system, results))
                means[system] = next(
                    row.value or 0.0 for row in rows if row.metric == "model_calls"
                )
                found += rows
                saved = 1 - means[system] / means["as_written"]
                found.append(Row(case, system, "model_calls_saved", saved, "share"))
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.rehearsal", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one errand in five, one seed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    chosen = errands()[:: 5 if given.quick else 1]
    rows = asyncio.run(rows_of(chosen, range(1 if given.quick else SEEDS)))
    about = environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        print(f"{row.case:<10} {row.system:<12} {row.metric:<20} {row.value:12.4f} {row.unit}")
    if given.json:
        write_results(given.json, rows, about)


if __name__ == "__main__":
    main()
