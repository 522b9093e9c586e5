"""The cases by name: where their tasks come from, and how much a model thinks in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from evals.planning.orchestration.cases import (
    chains,
    hotpotqa,
    movie,
    nestful,
    parallelqa,
    worfbench,
)
from evals.planning.orchestration.script import Style
from evals.planning.orchestration.setting import SPEEDS, Setting
from evals.planning.orchestration.task import Task


@dataclass(frozen=True, slots=True)
class Case:
    """`tasks` gives all there are; raises `Skipped`. `speed` names one of `SPEEDS`."""

    tasks: Callable[[], list[Task]]
    style: Style
    speed: str = "medium"

    @property
    def usual(self) -> Setting:
        """How its figures are taken where nothing else is said."""
        return Setting(SPEEDS[self.speed], self.style)

    def some(self, count: int) -> list[Task]:
        """`count` tasks, or all where there are fewer: the same each time."""
        found = self.tasks()
        return found if len(found) <= count else Random(0).sample(found, count)


_PARALLELQA: Final = Style(calls=14, answer=9)

CASES: Final[Mapping[str, Case]] = {
    "movie": Case(movie.tasks, Style(calls=17, answer=32, published=(21, 8))),
    "parallelqa": Case(parallelqa.tasks, _PARALLELQA),
    "hotpotqa": Case(hotpotqa.tasks, Style(calls=15, answer=38)),
    "nestful": Case(nestful.tasks, _PARALLELQA),
    "worfbench": Case(worfbench.tasks, _PARALLELQA),
    "chains": Case(chains.tasks, _PARALLELQA),
    "streaming": Case(chains.tasks_with_pause, _PARALLELQA, "fast"),
}
