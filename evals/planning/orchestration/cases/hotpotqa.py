"""HotpotQA comparison questions: look both things up, then compare."""

from __future__ import annotations

import re

from evals.planning.data import load
from evals.planning.orchestration.passages import search
from evals.planning.orchestration.task import Task
from weft.planner.plan import Plan, PlanStep, Ref

_FILE = "planner/llmcompiler/hotpotqa_comparison.json"
_WORD = r"[A-Z0-9À-Þ\"'][^\s,?;]*"
_SMALL = r"(?:of|the|de|la|du|van|von|in|for|on|to|a|at|No\.)"
_NAME = rf"{_WORD}(?: (?:{_SMALL} )*{_WORD})*"
_PAIR = re.compile(rf"({_NAME}),? (?:and|or|than|to|with) (?:the |did |was |is )?({_NAME})")


def tasks() -> list[Task]:
    """The questions in which two names can be told by their capitals. Raises: `Skipped`."""
    found = []
    for item in load(_FILE):
        pair = names(item["question"])
        if pair is not None:
            steps = tuple(PlanStep(n + 1, "search", {"query": name}) for n, name in enumerate(pair))
            plan = Plan(steps, (Ref(1), Ref(2)))
            found.append(Task(item["id"], item["question"], plan, (search(),), item["answer"]))
    return found


def names(question: str) -> tuple[str, str] | None:
    """The two things that a question compares; None where capitals do not show them."""
    rest = question[0].lower() + question[1:]  # the first word's capital says nothing
    found = _PAIR.search(rest)
    if found is None:
        return None
    first, second = (name.strip("\"'") for name in found.groups())
    return (first, second) if first != second else None
