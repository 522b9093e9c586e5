"""Sequences of calls that use one another's results: names, order and references. NESTFUL."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evals.planning.quality import nestful, sequence
from evals.planning.quality.f1 import f1
from evals.planning.skills.case import Answer, Scores, Skill, SkillCase
from weft.planner.plan import Plan


def skills() -> list[Skill]:
    """`names`, `chained` and `nested`, over the same questions. Raises: `Skipped`."""
    items = nestful.items()
    linked = [item for item in items if any(sequence.edges(item.plan))]
    return [
        _skill("names", "set_f1", items, _names, {"set_f1": 0.0}),
        _skill("chained", "full_match", linked, _chained, {"full_match": 0.0, "order": 0.0}),
        _skill("nested", "edges_f1", linked, _nested, {"edges_f1": 0.0}),
    ]


def _skill(
    name: str,
    metric: str,
    items: list[nestful.Item],
    scores: Callable[[Plan, Plan], Scores],
    nothing: Scores,
) -> Skill:
    def case(item: nestful.Item) -> SkillCase:
        def score(answer: Answer) -> Scores:
            assert answer.plan is not None
            return scores(answer.plan, item.plan)

        return SkillCase(item.id, item.question, item.tools, item.plan, score, nothing)

    return Skill(name, metric, [case(item) for item in items], nestful.total() - len(items))


def _names(plan: Plan, gold: Plan) -> Scores:
    """F1 of the sets of tools: how often each is called does not count."""
    return {"set_f1": f1({step.tool for step in plan.steps}, {step.tool for step in gold.steps})}


def _chained(plan: Plan, gold: Plan) -> Scores:
    """`full_match`: the gold calls with all arguments, and no others, whatever the order of those
    that do not depend on one another. `order`: the share of gold's dependent pairs of tools that
    the plan calls in this order.
    """
    found = sequence.score(plan, gold)
    pairs = set(dependent(gold))
    first = {step.tool: place for place, step in reversed(list(enumerate(plan.steps)))}
    last = {step.tool: place for place, step in enumerate(plan.steps)}
    kept = [one in first and other in last and first[one] < last[other] for one, other in pairs]
    return {
        "full_match": float(found.full == 1.0 == found.calls),
        "order": sum(kept) / len(pairs) if pairs else None,
    }


def _nested(plan: Plan, gold: Plan) -> Scores:
    """F1 of who feeds which field into which parameter of whom."""
    return {"edges_f1": f1(sequence.edges(plan), sequence.edges(gold))}


def dependent(plan: Plan) -> Iterator[tuple[str, str]]:
    """Pairs of tools, the second of which needs a result of the first, directly or not."""
    tools = {step.number: step.tool for step in plan.steps}
    before: dict[int, set[int]] = {}
    for step in plan.steps:
        known = [number for number in step.needs if number in tools]
        before[step.number] = {*known, *(one for number in known for one in before[number])}
        yield from ((tools[number], step.tool) for number in before[step.number])
