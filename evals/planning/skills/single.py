"""Calls that need no other: BFCL's four categories, and the parameters of a named tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from evals.planning.quality import bfcl
from evals.planning.quality.ast_match import (
    OPTIONAL,
    Allowed,
    call_error,
    gold_calls,
    parallel_error,
)
from evals.planning.skills.case import Answer, Scores, Skill, SkillCase, abstained, plain, readable
from weft.planner.plan import Plan, PlanStep

CATEGORIES: Final[Mapping[str, str]] = {
    "bfcl_simple": "simple_python",
    "bfcl_parallel": "parallel",
    "bfcl_parallel_multiple": "parallel_multiple",
    "bfcl_irrelevance": "irrelevance",
}
"""Our name and that of the file."""


def categories() -> list[Skill]:
    """BFCL's categories by its own rules, in per cent. Raises: `Skipped`."""
    found = []
    for name, category in CATEGORIES.items():
        cases = [_case(item) for item in bfcl.items(category)]
        kept = [case for case in cases if readable(case)]
        found.append(Skill(name, "ast_match", kept, len(cases) - len(kept), "%"))
    return found


def _case(item: bfcl.Item) -> SkillCase:
    return SkillCase(
        item.id,
        item.question,
        item.tools,
        gold_plan(item),
        _matches(item),
        {"ast_match": 0.0},
        abstains=not item.gold,
    )


def gold_plan(item: bfcl.Item) -> Plan:
    """The calls that are right, side by side; none for a question that no function fits."""
    calls = enumerate(gold_calls(item.gold, item.functions), 1)
    return Plan(tuple(PlanStep(number, name, arguments) for number, (name, arguments) in calls))


def _matches(item: bfcl.Item) -> Callable[[Answer], Scores]:
    def score(answer: Answer) -> Scores:
        if not item.gold:
            return {"ast_match": 100.0 * abstained(answer, item.tools)}
        assert answer.plan is not None
        steps = answer.plan.steps
        if any(step.refs for step in steps):
            return {"ast_match": 0.0}  # the published check knows literals only
        calls = [(step.tool, plain(step.arguments)) for step in steps]
        return {"ast_match": 100.0 * (not parallel_error(calls, item.gold, item.functions))}

    return score


def parallel(found: list[Skill]) -> Skill:
    """The skill `parallel`: the cases of both parallel categories among `found`."""
    both = [one for one in found if one.name.startswith("bfcl_parallel")]
    cases = [case for one in both for case in one.cases]
    return Skill(
        "parallel",
        "ast_match",
        cases,
        sum(one.left_out for one in both),
        "%",
        lambda case: case.id.startswith("parallel_multiple"),
    )


def parameters() -> Skill:
    """Slots and values of one call of a tool that the question names. Raises: `Skipped`."""
    items = bfcl.items("simple_python")
    cases = [_parameters(item) for item in items]
    kept = [case for case in cases if readable(case)]
    return Skill("parameters", "values_f1", kept, len(cases) - len(kept))


def _parameters(item: bfcl.Item) -> SkillCase:
    name, allowed = next(iter(item.gold[0].items()))
    described = next(one["parameters"] for one in item.functions if one["name"] == name)

    def score(answer: Answer) -> Scores:
        assert answer.plan is not None
        given = next((one.arguments for one in answer.plan.steps if one.tool == name), None)
        if given is None:
            return _NO_PARAMETERS
        return parameter_scores(name, plain(given), allowed, described)

    return SkillCase(
        item.id,
        f"{item.question}\n\nCall {name} once, and nothing else.",
        item.tools,
        gold_plan(item),
        score,
        _NO_PARAMETERS,
    )


_NO_PARAMETERS: Final = {"slots_f1": 0.0, "values_f1": 0.0}


def parameter_scores(
    name: str,
    given: Mapping[str, Any],
    allowed: Allowed,
    described: Mapping[str, Any],
) -> Scores:
    """The F1 of the parameters that are given, and of those whose value is right too.

    What may be left out does not count where it is left out. 1 where nothing is due and nothing
    is given.
    """
    needed = [key for key, values in allowed.items() if OPTIONAL not in values]
    slots = [key for key in given if key in allowed]
    one = {"properties": described["properties"], "required": ()}
    right = [
        key
        for key in slots
        if not call_error((name, {key: given[key]}), name, {key: allowed[key]}, one)
    ]
    size = len(given) + len({*needed, *slots})
    return {
        "slots_f1": 2 * len(slots) / size if size else 1.0,
        "values_f1": 2 * len(right) / size if size else 1.0,
    }
