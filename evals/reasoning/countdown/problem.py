"""A Countdown problem: reach the target with every number once. Drawn, read and judged.

Knows nothing of searches. The distribution is that of Stream of Search (arXiv 2404.03683).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Final

STEP: Final = re.compile(r"(\d{1,18})([-+*/])(\d{1,18})=(\d{1,18})")

Numbers = tuple[int, ...]
Key = tuple[Numbers, int]


@dataclass(frozen=True, slots=True)
class Problem:
    """Numbers, each to be used exactly once, and what they shall come to."""

    numbers: Numbers
    target: int

    @property
    def key(self) -> Key:
        """What makes two problems the same: the numbers in any order, and the target."""
        return tuple(sorted(self.numbers)), self.target


def results(a: int, b: int) -> Iterator[tuple[str, int]]:
    """The steps that two numbers allow, as text and value; no negative numbers and no fractions."""
    high, low = max(a, b), min(a, b)
    for sign, value in (("+", a + b), ("*", a * b), ("-", high - low)):
        yield f"{high}{sign}{low}={value}", value
    if low and high % low == 0:
        yield f"{high}/{low}={high // low}", high // low


def solvable(numbers: Numbers, target: int) -> bool:
    """Whether any steps lead from `numbers` to `target`."""
    return _solvable(tuple(sorted(numbers)), target)


@lru_cache(maxsize=1 << 17)
def _solvable(numbers: Numbers, target: int) -> bool:
    if len(numbers) == 1:
        return numbers[0] == target
    for i, j in combinations(range(len(numbers)), 2):
        rest = tuple(n for k, n in enumerate(numbers) if k not in (i, j))
        if any(solvable((*rest, value), target) for _, value in results(numbers[i], numbers[j])):
            return True
    return False


def verified(problem: Problem, steps: Iterable[str]) -> bool:
    """Whether the steps, each `a+b=c`, use every number exactly once and end at the target."""
    left = list(problem.numbers)
    for step in steps:
        found = STEP.fullmatch(step)
        if found is None:
            return False
        a, sign, b, result = int(found[1]), found[2], int(found[3]), int(found[4])
        for operand in (a, b):
            if operand not in left:
                return False
            left.remove(operand)
        if result != _value(a, sign, b):
            return False
        left.append(result)
    return left == [problem.target]


def _value(a: int, sign: str, b: int) -> int | None:
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b if a >= b else None
        case "*":
            return a * b
        case _:
            return a // b if b and a % b == 0 else None


@dataclass(frozen=True, slots=True)
class Range:
    """From what problems are drawn: `size` numbers of 1 to `most`, targets of 10 to `target`."""

    size: int
    most: int = 99
    target: int = 100


def problems(
    seed: int, count: int, within: Range, without: Iterable[Key] = ()
) -> Iterator[Problem]:
    """`count` different solvable problems; `without` are keys that must not be drawn."""
    rng, seen = random.Random(seed), set(without)
    while count:
        problem = _drawn(rng, within)
        if problem.key not in seen:
            seen.add(problem.key)
            count -= 1
            yield problem


def _drawn(rng: random.Random, within: Range) -> Problem:
    target = rng.randint(10, within.target)
    while True:
        numbers = tuple(rng.randint(1, within.most) for _ in range(within.size))
        if solvable(numbers, target):
            return Problem(numbers, target)


def read_problems(path: Path) -> list[Problem]:
    """A file with one `{"nums": [...], "target": ...}` a line."""
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [Problem(tuple(row["nums"]), row["target"]) for row in rows]
