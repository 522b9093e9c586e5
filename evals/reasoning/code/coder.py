"""A scripted programmer who errs at stated rates, so that selectors are measured without a model.

It answers the prompts of `weft.reasoning.code`. What it answers depends on the exercise, the seed
and the prompt, and on nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from evals.reasoning.code.exercises import Exercise
from weft.core.ports import ModelRequest
from weft.reasoning.code.bench import canonical

_MADE: Final = 5
"""How many inputs or tests it makes when asked for some."""
_TITLES: Final = ("Input", "Result of A", "Result of B")
_SECTION: Final = r"{title}:\n(`+)\n(.*?)\n\1"


@dataclass(frozen=True, slots=True)
class Skill:
    """How often the programmer is right: with a program, the result of a test, a judgement."""

    program: float
    test: float = 0.75
    judge: float = 0.8


class Coder:
    """The programmer, for one exercise and one seed."""

    def __init__(self, exercise: Exercise, skill: Skill, seed: int) -> None:
        self._exercise = exercise
        self._skill = skill
        self._seed = seed

    def programs(self, number: int) -> list[str]:
        """So many programs, right ones at the rate of the skill, each wrong one as often."""
        random = Random(f"programs {self._exercise.name} {self._seed}")
        wrong = self._exercise.wrong
        return [
            self._exercise.right if random.random() < self._skill.program else random.choice(wrong)
            for _ in range(number)
        ]

    def answer(self, request: ModelRequest) -> str:
        """What it says to `request`."""
        system, asked = request.messages[0].content, request.messages[-1].content
        random = Random(f"{self._exercise.name} {self._seed} {system} {asked}")
        if "for which they print different" in system:
            return self._judged(asked, random)
        if "Two programs were written" in system:
            return json.dumps({"inputs": random.sample(self._exercise.pool, 2)})
        if "whose results" in system:
            pool = random.sample(self._exercise.pool, _MADE)
            return json.dumps({"tests": [self._test(given, random) for given in pool]})
        return json.dumps({"inputs": random.sample(self._exercise.pool, _MADE)})

    def _test(self, given: Sequence[object], random: Random) -> dict[str, object]:
        right = random.random() < self._skill.test
        other = given if right else random.choice(self._exercise.pool)
        return {"input": given, "expected": self._exercise.result(other)}

    def _judged(self, asked: str, random: Random) -> str:
        given, one, other = (_under(title, asked) for title in _TITLES)
        ahead = 0
        for place, written in enumerate(given[-len(one) :]):
            result = self._exercise.result(json.loads(written))
            right = canonical(json.dumps(result, sort_keys=True))
            ahead += (one[place] == right) - (other[place] == right)
        verdict = "A" if ahead > 0 else "B" if ahead < 0 else "neither"
        if random.random() >= self._skill.judge:
            verdict = {"A": "B", "B": "A"}.get(verdict, random.choice("AB"))
        return f"Verdict: {verdict}"


def _under(title: str, asked: str) -> list[str]:
    """What stands under each `title` in a prompt."""
    return [found[1] for found in re.findall(_SECTION.format(title=title), asked, re.DOTALL)]
