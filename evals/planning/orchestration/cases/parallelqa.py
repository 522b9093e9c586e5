"""ParallelQA: facts of two to five things are looked up, changed, and compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evals.planning.data import load
from evals.planning.orchestration.calculator import calculator
from evals.planning.orchestration.cases.parallelqa_gold import FACTS, GOLD
from evals.planning.orchestration.passages import search
from evals.planning.orchestration.task import Task
from weft.planner.plan import Plan, PlanStep, Ref, Value

_FILE = "planner/llmcompiler/parallelqa_dataset.json"
_PAIRED: Final = {"/": "ratio", "-": "difference", "~": "mean"}
_THINGS = sorted({name.split(" of ")[-1] for name in FACTS} | set(FACTS), key=len, reverse=True)
_PART = re.compile(rf"({'|'.join(map(re.escape, _THINGS))})([*/~+-])(.*)")
_HALF = "half of "


def tasks() -> list[Task]:
    """All 113 items. Raises: `Skipped`."""
    tools = (search(FACTS), calculator())
    return [
        Task(item["id"], item["question"], _Writer().plan(GOLD[item["id"]]), tools, item["answer"])
        for item in load(_FILE)
    ]


def things(gold: str) -> list[str]:
    """The first thing of each part of a line of gold, in order."""
    return [_taken_apart(part)[0] for part in gold.split(" > ")[0].split("; ")]


def _taken_apart(part: str) -> tuple[str, str, str]:
    found = _PART.fullmatch(part)
    assert found is not None, part
    return found[1], found[2], found[3]


class _Writer:
    """Writes one plan: each part's look-ups and then its number, as in the published examples."""

    def __init__(self) -> None:
        self._steps: list[PlanStep] = []
        self._looked_up: dict[str, Ref] = {}

    def plan(self, gold: str) -> Plan:
        described, how = gold.split(" > ")
        parts = [_taken_apart(part) for part in described.split("; ")]
        made = [self._part(*part) for part in parts]
        if how in {"most", "least"}:
            return Plan(tuple(self._steps), tuple(made))
        last = self._calculate(how.removeprefix(_HALF), made)
        if how.startswith(_HALF):
            last = self._calculate("product", [last, 0.5])
        return Plan(tuple(self._steps), (last,))

    def _part(self, thing: str, sign: str, other: str) -> Ref:
        if sign == "*":
            factor = float(other)
            one = self._search(thing)
            return one if factor == 1 else self._calculate("product", [one, factor])
        if sign in _PAIRED:
            return self._calculate(_PAIRED[sign], [self._search(thing), self._search(other)])
        states = [name for name in (thing, other) if name]
        people, area = (
            self._total([self._search(f"{what} of {name}") for name in states])
            for what in ("population", "area")
        )
        return self._calculate("ratio", [people, area])

    def _search(self, query: str) -> Ref:
        if query not in self._looked_up:
            step = self._write("search", {"query": query})
            self._looked_up[query] = Ref(step.source, ("value",))
        return self._looked_up[query]

    def _total(self, refs: list[Ref]) -> Ref:
        return refs[0] if len(refs) == 1 else self._calculate("sum", refs)

    def _calculate(self, operation: str, numbers: Sequence[Ref | float]) -> Ref:
        return self._write("calculate", {"operation": operation, "numbers": tuple(numbers)})

    def _write(self, tool: str, arguments: dict[str, Value]) -> Ref:
        step = PlanStep(len(self._steps) + 1, tool, arguments)
        self._steps.append(step)
        return Ref(step.number)
