"""Default training prompts: questions, summaries, code, JSON, sums, letters and plans.

Made from the templates in `starter_prompts.json`, always the same. They resemble agents' requests,
and are of no benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Final

import numpy as np

from weft.training.prompts import Conversation

_COUNT: Final = 480


class _Templates:
    """Random texts of the file, from one seed."""

    def __init__(self, seed: int) -> None:
        file = files("weft.training").joinpath("starter_prompts.json")
        self._texts: dict[str, list[str]] = json.loads(file.read_text("utf-8"))
        self._rng = np.random.default_rng(seed)

    def of(self, kind: str) -> str:
        """A random text of that kind."""
        texts = self._texts[kind]
        return texts[int(self._rng.integers(len(texts)))]

    def number(self, low: int, high: int) -> int:
        """A random number from `low`, below `high`."""
        return int(self._rng.integers(low, high))


def starter_prompts() -> list[Conversation]:
    """All prompts, distinct, with the kinds in turn."""
    templates, prompts = _Templates(6), dict[str, None]()
    while len(prompts) < _COUNT:
        for make in _MAKERS:
            prompts.setdefault(make(templates))
    return [(("user", text),) for text in list(prompts)[:_COUNT]]


def _question(texts: _Templates) -> str:
    return texts.of("questions").format(a=texts.of("topics"), b=texts.of("topics"))


def _plan(texts: _Templates) -> str:
    goal, steps = texts.of("goals"), texts.number(4, 8)
    return f"Make a plan in {steps} numbered steps to {goal}."


def _person(texts: _Templates) -> str:
    return (
        f"{texts.of('people')} is {texts.number(21, 65)} years old, works as a "
        f"{texts.of('jobs')} at {texts.of('firms')} and has lived in {texts.of('places')} since "
        f"{texts.number(1990, 2024)}."
    )


def _report(texts: _Templates) -> str:
    firm, place = texts.of("firms"), texts.of("places")
    return (
        f"{firm} announced on {texts.of('days')} that its sales rose by {texts.number(3, 40)} "
        f"percent to {texts.number(20, 900)} million dollars. The company, which employs "
        f"{texts.number(2, 90) * 100} people in {place}, gave {texts.of('reasons')} as the main "
        f"reason. {texts.of('people')}, who leads the company, said that a new factory for the "
        f"{texts.of('wares')} will open in {texts.of('places')} next year. Analysts were more "
        f"careful: {texts.of('reasons')} may not last, they said, and competitors are catching up."
    )


def _summary(texts: _Templates) -> str:
    return f"Summarise this text in {texts.of('sentences')}.\n\n" + _report(texts)


def _extraction(texts: _Templates) -> str:
    facts = "\n".join(_person(texts) for _ in range(texts.number(1, 4)))
    return (
        "Return a JSON list with an object for each person, with the keys name, age, job, company, "
        f"city and since. Print nothing else.\n\n{facts}"
    )


def _order(texts: _Templates) -> str:
    wares = ", ".join(f"{texts.number(1, 9)} x {texts.of('wares')}" for _ in range(3))
    return (
        f"{texts.of('people')} orders {wares}, to be sent to {texts.of('places')}. Write the order "
        'as a JSON object with the keys "customer", "city" and "items".'
    )


def _quote(texts: _Templates) -> str:
    return f"{_report(texts)}\n\n{texts.of('quotes')} Answer by quoting the sentence that says it."


def _edit(texts: _Templates) -> str:
    return f"{texts.of('edits')}\n\n```\n{texts.of('code')}\n```"


def _sum(texts: _Templates) -> str:
    person, ware = texts.of("people"), texts.of("wares")
    return (
        f"{person} buys {texts.number(2, 12)} of a {ware} at {texts.number(3, 60)} dollars each "
        f"and pays with {texts.number(8, 20) * 50} dollars. How much money comes back? "
        "Think step by step."
    )


def _letter(texts: _Templates) -> str:
    return texts.of("letters").format(
        person=texts.of("people"),
        day=texts.of("days"),
        ware=texts.of("wares"),
        firm=texts.of("firms"),
        place=texts.of("places"),
    )


_MAKERS: Final[tuple[Callable[[_Templates], str], ...]] = (
    _question,
    _summary,
    _edit,
    _question,
    _extraction,
    _plan,
    _question,
    _order,
    _sum,
    _edit,
    _letter,
    _quote,
)
