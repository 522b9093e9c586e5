"""A case of a skill: what is asked, the gold answer, and how an answer is scored. Asks nobody."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.core.errors import PlanError
from weft.core.values import ToolSpec
from weft.planner.plan import Plan
from weft.planner.text.reader import read
from weft.planner.text.writer import write

Scores = Mapping[str, float | None]
"""By metric; None where a metric does not apply to the case."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`plan` is None where `error` says in a word why `text` is no plan, and in replies.

    `failed`: the model could not be asked. `free`: the plan was to be held to a grammar, and was
    not.
    """

    plan: Plan | None = None
    text: str = ""
    error: str = ""
    failed: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class SkillCase:
    """`plan` is the gold plan; None where the answer is a reply in words, whose gold is `reply`.

    `nothing` has the scores of an answer that cannot be read; `score` is never given one, unless
    the case `abstains`: there plain text without any call is right as well.
    """

    id: str
    question: str
    tools: tuple[ToolSpec, ...]
    plan: Plan | None
    score: Callable[[Answer], Scores]
    nothing: Scores
    reply: str = ""
    abstains: bool = False

    @property
    def gold(self) -> str:
        """The text of the right answer."""
        return self.reply if self.plan is None else write(self.plan)


@dataclass(frozen=True, slots=True)
class Skill:
    """A row of the report: its cases, the `metric` that stands for it, and what was left out.

    `left_out`: items whose gold answer cannot be written as a plan for the tools as described, or
    that have nothing to score. `strata`: a limit takes as many cases of each, by `stratum`.
    """

    name: str
    metric: str
    cases: Sequence[SkillCase]
    left_out: int = 0
    unit: str = "share"
    stratum: Callable[[SkillCase], Any] = field(default=lambda _: None)

    def some(self, limit: int) -> list[SkillCase]:
        """At most `limit` cases, by a hash: the same each time, and those of smaller limits too."""
        groups: dict[Any, list[SkillCase]] = {}
        for case in self.cases:
            groups.setdefault(self.stratum(case), []).append(case)
        chosen: list[SkillCase] = []
        for place, group in enumerate(sorted(groups.values(), key=len)):
            share = (limit - len(chosen)) // (len(groups) - place)
            chosen += sorted(group, key=_draw)[:share]
        return chosen


def _draw(case: SkillCase) -> str:
    return hashlib.sha256(case.id.encode()).hexdigest()


def readable(case: SkillCase) -> bool:
    """Whether the gold answer can be written for the tools as they are described."""
    if case.plan is None:
        return True
    try:
        read(write(case.plan), case.tools)
    except PlanError:
        return False
    return True


def abstained(answer: Answer, tools: Sequence[ToolSpec]) -> bool:
    """Whether nothing is called: a plan without steps, or words in which no tool is called.

    An empty answer, and one that could not be had, is no decision.
    """
    if answer.plan is not None:
        return not answer.plan.steps
    if answer.failed or not answer.text.strip():
        return False
    names = "|".join(re.escape(tool.name) for tool in tools)
    return not names or re.search(rf"(?:{names})[\"'`]?\s*\(", answer.text) is None


def plain(value: object) -> Any:
    """A plan's value with lists as lists, as JSON has them."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(inner) for inner in value]
    return value
