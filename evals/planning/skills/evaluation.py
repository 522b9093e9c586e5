"""Every skill of every system as rows, models once free and once held to the grammar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final, Protocol

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.planning.skills import nested, next_call, replies, single
from evals.planning.skills.case import Answer, Scores, Skill, SkillCase
from evals.planning.skills.options import GOLD, PREFIX, SkillOptions, is_scripted
from evals.planning.skills.planted import PLANTED
from evals.planning.skills.solvers import Asked, ModelSolver, ScriptedSolver
from weft.core.errors import WeftError
from weft.planner.grammar.limits import Constrain
from weft.workflow.runtime.models.factory import Models

FEW: Final = 4
"""Cases of each task where time is short and no limit was given."""
MODES: Final[tuple[tuple[str, Constrain], ...]] = ((", free", "never"), ("", "auto"))
"""What is added to a model's name in the rows, and how its plans are written."""


class Solver(Protocol):
    """Answers cases."""

    async def answers(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answers in the order asked."""
        ...


def skills() -> list[Skill]:
    """All rows' cases. Raises: `Skipped` without data."""
    categories = single.categories()
    names, chained, edges = nested.skills()
    return [
        *categories,
        names,
        single.parameters(),
        single.parallel(categories),
        chained,
        edges,
        next_call.skill(),
        replies.skill(),
    ]


async def run(effort: Effort, options: SkillOptions | None = None) -> list[Row]:
    """The rows of all systems; a model that cannot be asked says why in a row.

    Raises: `Skipped` without data, or where no system could be asked.
    """
    asked = options or SkillOptions()
    found = _chosen(skills(), asked.rows)
    limit = asked.limit or effort.of(FEW, sys.maxsize)
    rows: list[Row] = []
    for system in asked.systems:
        try:
            rows += await _of_system(system, asked, found, limit)
        except (WeftError, Skipped) as error:
            reason = f"skipped: {error}".splitlines()[0]
            print(f"{system}: {reason}", file=sys.stderr, flush=True)
            rows.append(Row("skills", asked.label(system), reason, None, ""))
    if all(row.metric.startswith("skipped") for row in rows):
        raise Skipped("; ".join(f"{row.system}: {row.metric[9:]}" for row in rows))
    return rows


def _chosen(found: Sequence[Skill], names: Sequence[str]) -> list[Skill]:
    """The skills of these names; all for none. Raises: `Skipped` for an unknown name."""
    known = [one.name for one in found]
    if unknown := [name for name in names if name not in known]:
        raise Skipped(f"there is no skill {unknown[0]}; there are {', '.join(known)}")
    return [one for one in found if not names or one.name in names]


async def _of_system(
    system: str, options: SkillOptions, found: Sequence[Skill], limit: int
) -> list[Row]:
    label = options.label(system)
    if is_scripted(system):
        return await rows_of(ScriptedSolver(script(system)), label, found, limit)
    rows: list[Row] = []
    async with Models() as models:
        model = models.of(options.declared(system))
        await model.capabilities()
        for suffix, constrain in MODES[1:] if options.held else MODES:
            solver = ModelSolver(model, constrain, options.max_tokens)
            rows += await rows_of(solver, f"{label}{suffix}", found, limit)
    return rows


def script(system: str) -> Callable[[str, SkillCase], str]:
    """What `gold` or `planted:KIND` writes."""
    planted = None if system == GOLD else PLANTED[system.removeprefix(PREFIX)]

    def text(skill: str, case: SkillCase) -> str:
        return planted.spoil(case) if planted and skill in planted.tasks else case.gold

    return text


async def rows_of(solver: Solver, label: str, found: Sequence[Skill], limit: int) -> list[Row]:
    """The rows of one system. Raises: `Skipped` where every request failed."""
    asked = [(skill.name, case) for skill in found for case in skill.some(limit)]
    print(f"asking {label}", file=sys.stderr, flush=True)
    answers = await solver.answers(asked)
    if answers and all(answer.failed for answer in answers):
        raise Skipped(f"{label}: every request failed ({answers[0].error})")
    rows: list[Row] = []
    for skill in found:
        graded = [
            (case, answer)
            for (name, case), answer in zip(asked, answers, strict=True)
            if name == skill.name
        ]
        rows += skill_rows(skill, label, graded)
    return rows


def grade(case: SkillCase, answer: Answer) -> Scores:
    """The scores of an answer: nothing where it could not be had, or not be read."""
    unreadable = bool(answer.error) and not case.abstains
    return case.nothing if answer.failed or unreadable else case.score(answer)


def skill_rows(skill: Skill, system: str, graded: Sequence[tuple[SkillCase, Answer]]) -> list[Row]:
    """The means of all metrics, first the one that stands for the skill, and counts."""
    scores = [grade(case, answer) for case, answer in graded]
    metrics = dict.fromkeys([skill.metric, *(name for one in scores for name in one)])
    rows = []
    for metric in metrics:
        values = [value for one in scores if (value := one.get(metric)) is not None]
        unit = skill.unit if metric == skill.metric else _UNITS.get(metric, "share")
        rows.append(Row(skill.name, system, metric, fmean(values) if values else None, unit))
    answers = [answer for _, answer in graded]
    unreadable = [bool(one.error) and not one.failed for one in answers]
    rows += [
        Row(skill.name, system, "unreadable", fmean(unreadable) if answers else None, "share"),
        Row(skill.name, system, "cases", len(answers), "cases"),
        Row(skill.name, system, "left_out", skill.left_out, "items"),
    ]
    counts = (
        ("failed_requests", sum(one.failed for one in answers)),
        ("not_constrained", sum(one.free for one in answers)),
    )
    rows += [Row(skill.name, system, name, count, "cases") for name, count in counts if count]
    return rows


_UNITS: Final = {"unsupported_facts": "facts a reply"}
