"""`python -m evals.regroup [--quick] [--json FILE]`: plans recovered from calls made one by one.

The gold plans of NESTFUL, BFCL and ParallelQA run step by step with stub tools, whose results are
values that occur nowhere else (`unique`), or collide: 0, 1, yes (`colliding`). From the calls alone
the plan is made again.

edge_f1            of "waits for", against the gold plan's references; over all plans
precision, recall  of the same
critical_path      the longest chain of calls: `before` all one after the other, `after` regrouped
same_values        share of plans that give every call the same arguments when they run again
ambiguous          values whose origin was not sure, for each plan
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from evals.engine.rows import Row
from evals.planning.effort import Skipped
from evals.planning.orchestration.cases import nestful, parallelqa
from evals.planning.orchestration.task import levels, resolved
from evals.planning.quality import bfcl
from evals.planning.quality.ast_match import gold_calls
from evals.results import environment, title, write_results
from weft.planner.plan import Plan, PlanStep
from weft.planner.regroup import RegroupedPlan, ToolCallRecord, regroup

_QUICK: Final = 40
_COLLIDING: Final = (0, 1, "yes")


@dataclass(frozen=True, slots=True)
class Gold:
    """A question and its plan."""

    id: str
    question: str
    plan: Plan


@dataclass(slots=True)
class Stubs:
    """Tools whose results have every field that the plan refers to; `values` makes the leaves."""

    plan: Plan
    values: Callable[[int], Any]
    _number: Iterator[int] = field(default_factory=count)

    def results(self) -> Mapping[int, Any]:
        """The result of each step."""
        paths: dict[int, list[tuple[str | int, ...]]] = {
            step.number: [] for step in self.plan.steps
        }
        for ref in (*self.plan.results, *(ref for step in self.plan.steps for ref in step.refs)):
            paths[int(ref.source)].append(ref.path)
        return {number: self._shape(found) for number, found in paths.items()}

    def _shape(self, paths: Sequence[tuple[str | int, ...]]) -> Any:
        deeper = [path for path in paths if path]
        if not deeper:
            return self.values(next(self._number))
        keys = list(dict.fromkeys(path[0] for path in deeper))
        inner = {key: self._shape([p[1:] for p in deeper if p[0] == key]) for key in keys}
        if all(isinstance(key, int) for key in keys):
            size = 1 + max(key for key in keys if isinstance(key, int))
            return [inner.get(at, self.values(next(self._number))) for at in range(size)]
        return {**{str(k): v for k, v in inner.items()}, "more": self.values(next(self._number))}


def unique(number: int) -> Any:
    """A text or a number that occurs nowhere else."""
    return f"value-{number}-of-a-stub" if number % 2 else 700_001 + number * 13


def colliding(number: int) -> Any:
    """One of three values that other results and arguments have too."""
    return _COLLIDING[number % len(_COLLIDING)]


def one_by_one(plan: Plan, results: Mapping[int, Any]) -> list[ToolCallRecord]:
    """The calls of `plan` as a run one after the other records them."""
    return [
        ToolCallRecord(step.tool, resolved(dict(step.arguments), results), results[step.number])
        for step in plan.steps
    ]


def golds(name: str) -> list[Gold]:
    """The plans of one data set. Raises: `Skipped`."""
    match name:
        case "nestful":
            return [Gold(task.id, task.question, task.plan) for task in nestful.tasks()]
        case "parallelqa":
            return [Gold(task.id, task.question, task.plan) for task in parallelqa.tasks()]
        case _:
            return [_of_bfcl(item) for kind in bfcl.CATEGORIES for item in bfcl.items(kind)]


def _of_bfcl(item: bfcl.Item) -> Gold:
    steps = [
        PlanStep(number, name, _tuples(dict(arguments)))
        for number, (name, arguments) in enumerate(gold_calls(item.gold, item.functions), 1)
    ]
    return Gold(item.id, item.question, Plan(tuple(steps)))


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _tuples(each) for key, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class Tally:
    """Counts over the plans of one data set."""

    plans: int = 0
    right: int = 0
    found: int = 0
    gold: int = 0
    before: int = 0
    after: int = 0
    best: int = 0
    same: int = 0
    ambiguous: int = 0

    def add(self, gold: Gold, values: Callable[[int], Any]) -> None:
        """Run, regroup and compare one plan."""
        results = Stubs(gold.plan, values).results()
        calls = one_by_one(gold.plan, results)
        made = regroup(gold.question, calls)
        numbers = {step.number: place for place, step in enumerate(gold.plan.steps, 1)}
        wanted = {(numbers[n], numbers[s.number]) for s in gold.plan.steps for n in s.needs}
        edges = {(other, step) for step, needed in made.needs.items() for other in needed}
        self.plans += 1
        self.right += len(edges & wanted)
        self.found += len(edges)
        self.gold += len(wanted)
        self.before += len(calls)
        self.after += len(made.levels)
        self.best += len(levels(gold.plan.steps))
        self.same += _gives_the_same(made, calls)
        self.ambiguous += len(made.ambiguities)

    def rows(self, case: str, system: str) -> Iterable[Row]:
        """The figures."""
        precision = self.right / self.found if self.found else 1.0
        recall = self.right / self.gold if self.gold else 1.0
        both = self.found + self.gold
        for metric, value, unit in (
            ("plans", self.plans, "plans"),
            ("edges", self.gold, "edges"),
            ("edge_f1", 2 * self.right / both if both else 1.0, "share"),
            ("precision", precision, "share"),
            ("recall", recall, "share"),
            ("critical_path_before", self.before / self.plans, "calls"),
            ("critical_path_after", self.after / self.plans, "calls"),
            ("critical_path_gold", self.best / self.plans, "calls"),
            ("same_values", self.same / self.plans, "share"),
            ("ambiguous", self.ambiguous / self.plans, "values"),
        ):
            yield Row(case, system, metric, value, unit)


def _gives_the_same(made: RegroupedPlan, calls: Sequence[ToolCallRecord]) -> bool:
    """Whether the plan, level by level, makes the calls that were recorded."""
    results: dict[int, Any] = {}
    steps = {step.number: step for step in made.plan.steps}
    for level in made.levels:
        for number in level:
            arguments = resolved(dict(steps[number].arguments), results)
            if arguments != resolved(dict(calls[number - 1].arguments), {}):
                return False
        results.update({number: calls[number - 1].result for number in level})
    return True


def rows_of(*, quick: bool = False) -> list[Row]:
    """Every data set with either kind of values."""
    found: list[Row] = []
    for case in ("nestful", "bfcl", "parallelqa"):
        try:
            plans = [gold for gold in golds(case) if gold.plan.steps]
        except Skipped as why:
            found.append(Row(case, "weft", f"skipped: {why}", None, ""))
            continue
        for values in (unique, colliding):
            tally = Tally()
            for gold in plans[: _QUICK if quick else None]:
                tally.add(gold, values)
            found += tally.rows(case, values.__name__)
    return found


def main() -> None:
    """Measure, print, write."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m evals.regroup", None, __doc__, formatter_class=form)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} plans of each set")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows, about = rows_of(quick=asked.quick), environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        value = "" if row.value is None else f"{row.value:10.3f}"
        print(f"{row.case:<12} {row.system:<10} {row.metric:<22} {value} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


if __name__ == "__main__":
    main()
