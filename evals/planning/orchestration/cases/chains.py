"""A chain of look-ups and single ones after it: plans of which much can run before all is written.

Built here, from the names in ParallelQA, because the data sets have few deep plans. The chain is
written first, as a planner does that has learnt what takes longest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, Final

from evals.planning.orchestration.cases.parallelqa_gold import FACTS
from evals.planning.orchestration.passages import passage
from evals.planning.orchestration.task import Canned, Task
from evals.planning.orchestration.thought import thought
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref

COUNT: Final = 60
PAUSE: Final = 160
_DEPTHS: Final = (4, 6, 8)
_SINGLES: Final = (2, 4)


def _page(name: str, description: str, parameter: str) -> Canned:
    """A tool that gives a page: its text, and where its first link leads."""
    texts = {"text": {"type": "string"}, "link": {"type": "string"}}
    spec = ToolSpec(
        name,
        description,
        {
            "type": "object",
            "properties": {parameter: {"type": "string"}},
            "required": [parameter],
            "additionalProperties": False,
        },
        {"type": "object", "properties": texts, "required": list(texts)},
        pure=True,
    )

    def found(arguments: Mapping[str, Any]) -> Mapping[str, str]:
        about = str(arguments[parameter])
        link = hashlib.sha256(about.encode()).hexdigest()[:8]
        return {"text": passage(about), "link": link}

    return Canned(spec, found)


_PAGES: Final = (
    _page("search", "Looks the query up in an encyclopedia.", "query"),
    _page("follow", "Gives the page that a link leads to.", "link"),
)


def tasks() -> list[Task]:
    """60 tasks: chains of 4 to 8 calls, written in one go with 2 or 4 single ones after them."""
    return drawn(0)


def tasks_with_pause() -> list[Task]:
    """The same, by a planner that thinks for 160 tokens between the chain and the rest."""
    return drawn(PAUSE)


def drawn(pause: int) -> list[Task]:
    """The tasks, with a thought of `pause` tokens after the chain."""
    draw = Random(4)
    return [_task(number, pause, draw) for number in range(COUNT)]


def _task(number: int, pause: int, draw: Random) -> Task:
    depth, singles = draw.choice(_DEPTHS), draw.choice(_SINGLES)
    first, *others = draw.sample(sorted(FACTS), 1 + singles)
    steps = [PlanStep(1, "search", {"query": first})]
    steps += [PlanStep(n, "follow", {"link": Ref(n - 1, ("link",))}) for n in range(2, depth + 1)]
    steps += [PlanStep(depth + 1 + n, "search", {"query": name}) for n, name in enumerate(others)]
    steps[depth] = replace(steps[depth], thought=thought(pause))
    results = tuple(Ref(step.number) for step in steps[depth - 1 :])
    question = f"Where does the trail of {first} lead in {depth} steps, and what of {others}?"
    return Task(f"chain_{number}", question, Plan(tuple(steps), results), _PAGES, "there")
