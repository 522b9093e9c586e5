"""Countdown with three numbers, GSM8K and MATH-500, in words, judged strictly. Knows no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evals.planning.data import folder, load, load_lines
from evals.reasoning.countdown.problem import Problem, read_problems, verified
from evals.reasoning.equal_budget import Item
from evals.reasoning.models.expression import Unreadable, steps_of
from weft.reasoning.answers import Reader, answer_key, answer_text, canonical
from weft.reasoning.question import Question
from weft.reasoning.thought import Sample

COUNTDOWN: Final = (
    "Use each of the numbers {numbers} exactly once, with +, -, * and /, to make {target}. "
    "The answer is one expression. For example, with 5, 2 and 4 the number 14 is made by 5 * 2 + 4."
)
TASKS_VERSION: Final = "tasks-1"


@dataclass(frozen=True, slots=True)
class Task:
    """Items, how their answers are read, and a verifier, where answers can be checked alone.

    `verify` says whether a text solves the question, without the gold answer; None: nobody can.
    """

    name: str
    items: Sequence[Item]
    read: Reader
    verify: Callable[[Question, str], bool] | None = None

    def score(self, question: Question, sample: Sample) -> float:
        """1 for a sample that the verifier accepts, else 0."""
        return float(self.verify is not None and self.verify(question, sample.text))


def countdown(count: int) -> Task:
    """The first `count` problems. Right is what the strict verifier accepts. Raises: `Skipped`."""
    path = folder("reasoning") / "countdown3_val_500.jsonl"
    problems = read_problems(path)[:count]
    asked = {_asked(problem): problem for problem in problems}

    def verify(question: Question, text: str) -> bool:
        return solves(asked[question.text], text)

    items = [
        Item(f"countdown {number}", Question(text), _solved(problem))
        for number, (text, problem) in enumerate(asked.items())
    ]
    return Task("countdown3", items, expression_key, verify)


def gsm8k(count: int) -> Task:
    """The first `count` problems; right is the number after ####. Raises: `Skipped`."""
    items = []
    for number, row in enumerate(load_lines("reasoning/gsm8k_test.jsonl")[:count]):
        gold = canonical(row["answer"].rpartition("####")[2])
        items.append(Item(f"gsm8k {number}", Question(row["question"]), _equal(gold)))
    return Task("gsm8k", items, last_number_key)


def math500(count: int) -> Task:
    """The first `count` problems of MATH-500; right is the gold answer in canonical form, which
    knows numbers, fractions and plain expressions, and no algebra. Raises: `Skipped`.
    """
    items = [
        Item(f"math500 {number}", Question(row["problem"]), _same_key(canonical(row["answer"])))
        for number, row in enumerate(load("reasoning/math500.json")[:count])
    ]
    return Task("math500", items, answer_key)


def solves(problem: Problem, text: str) -> bool:
    """Whether the answer in `text` is an expression that the strict verifier accepts."""
    try:
        return verified(problem, steps_of(answer_text(text, numeric=True) or text))
    except Unreadable:
        return False


def last_number_key(completion: str, whole: bool = True) -> str | None:
    """The marked answer, or else the last number: all answers of GSM8K are numbers."""
    found = answer_text(completion, whole=whole, numeric=True)
    return None if found is None else canonical(found)


def expression_key(completion: str, whole: bool = True) -> str | None:
    """The answer as an expression without blanks; None: it is none."""
    found = answer_text(completion, whole=whole, numeric=True) or ""
    try:
        return " ".join(steps_of(found)) or None
    except Unreadable:
        return None


def _asked(problem: Problem) -> str:
    numbers = ", ".join(map(str, problem.numbers))
    return COUNTDOWN.format(numbers=numbers, target=problem.target)


def _solved(problem: Problem) -> Callable[[str, str | None], bool]:
    return lambda text, _: solves(problem, text)


def _same_key(gold: str | None) -> Callable[[str, str | None], bool]:
    return lambda text, key: gold is not None and (key or answer_key(text)) == gold


def _equal(gold: str | None) -> Callable[[str, str | None], bool]:
    return lambda text, key: gold is not None and (key or last_number_key(text)) == gold
