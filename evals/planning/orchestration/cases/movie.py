"""Movie recommendation: eight look-ups that do not depend on one another."""

from __future__ import annotations

from evals.planning.data import load
from evals.planning.orchestration.passages import search
from evals.planning.orchestration.task import Task
from weft.planner.plan import Plan, PlanStep, Ref

_FILE = "planner/llmcompiler/movie_recommendations_formatted.json"
_BEFORE = "Find a movie similar to "
_BETWEEN = "\nOptions:\n"


def tasks() -> list[Task]:
    """All 500 items. Raises: `Skipped`."""
    return [_task(item["id"], item["question"], item["answer"]) for item in load(_FILE)]


def titles(question: str) -> list[str]:
    """The four films that are liked, and the four to choose from.

    Some titles have a comma inside, so what is liked is cut at the last three commas.
    """
    liked, options = question.removeprefix(_BEFORE).split(_BETWEEN)
    chosen = [line.strip() for line in options.splitlines() if line.strip()]
    return [title.strip() for title in liked.rsplit(",", 3)] + chosen


def _task(name: str, question: str, answer: str) -> Task:
    steps = tuple(
        PlanStep(place + 1, "search", {"query": title})
        for place, title in enumerate(titles(question))
    )
    plan = Plan(steps, tuple(Ref(step.number) for step in steps))
    return Task(f"movie_{name}", question, plan, (search(),), answer)
