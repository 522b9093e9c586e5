"""One program out of several: public tests first, then what they print.

Writes no program: what was written once can be chosen from in several ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.reasoning.code.bench import Bench
from weft.reasoning.code.clusters import keyed
from weft.reasoning.code.made import made_inputs
from weft.reasoning.code.problem import Problem
from weft.reasoning.code.separating import BySeparation
from weft.reasoning.code.tested import ByTests
from weft.reasoning.question import Question
from weft.reasoning.selection.majority import Majority
from weft.reasoning.selection.scored import BestOf
from weft.reasoning.selection.selector import Selected, Selector
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking

Make = Callable[[Bench, Problem, Sequence[str]], Selector]
_MADE: Final = 8
"""How many inputs, or tests, the model is asked for."""
_COMPARING: Final[Mapping[str, Make]] = {
    "majority": lambda _, __, ___: Majority(),
    "tests": lambda bench, problem, _: BestOf(ByTests(bench, problem, _MADE)),
    "sstar": BySeparation,
}
CHOICES: Final = ("first", *_COMPARING)
"""Ways to choose: the first; the one whose outputs most others have; by tests that the model
makes; by pairs, which an input tells apart."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen sample, or none, and all samples with the keys that they were compared by."""

    selected: Selected
    samples: tuple[Sample, ...]


async def choose(
    thread: Asking,
    bench: Bench,
    question: Question,
    problem: Problem,
    samples: Sequence[Sample],
    how: str,
) -> Choice:
    """Choose one of `samples`, whose texts are programs, as `CHOICES` have it.

    Only those that pass the most public tests are compared. Raises: `SandboxError`.
    """
    best = _best(samples)
    if len({sample.text for sample in best}) < 2 or how not in _COMPARING:
        return Choice(_first(samples, best, problem), tuple(samples))
    made = await made_inputs(thread, problem, _MADE)
    inputs = tuple(dict.fromkeys((*(test.given for test in problem.tests), *made)))
    compared = await keyed(thread.context, "outputs", bench, best, inputs)
    selector = _COMPARING[how](bench, problem, inputs)
    selected = await selector.select(thread, question, compared)
    why = f"{_passing(best, samples, problem)}; {how}: {selected.why}"
    by_index = {sample.index: sample for sample in compared}
    return Choice(
        replace(selected, why=why), tuple(by_index.get(each.index, each) for each in samples)
    )


def _best(samples: Sequence[Sample]) -> list[Sample]:
    programs = [sample for sample in samples if sample.text]
    most = max((sample.score or 0.0 for sample in programs), default=0.0)
    return [sample for sample in programs if (sample.score or 0.0) == most]


def _first(samples: Sequence[Sample], best: Sequence[Sample], problem: Problem) -> Selected:
    if not best:
        return Selected(None, None, f"none of {len(samples)} answers holds a program")
    chosen = best[0]
    return Selected(chosen.index, chosen.key, f"{_passing(best, samples, problem)}; the first")


def _passing(best: Sequence[Sample], samples: Sequence[Sample], problem: Problem) -> str:
    tests = len(problem.tests)
    if not tests:
        return f"{len(best)} of {len(samples)} answers hold a program"
    passed = round((best[0].score or 0.0) * tests)
    return f"{len(best)} of {len(samples)} programs pass {passed} of {tests} public tests"
