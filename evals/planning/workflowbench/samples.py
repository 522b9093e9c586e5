"""The samples, and what an independent counter over their lines finds in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from evals.planning.data import load

_CALL: Final = re.compile(r"\s*(?:\w+\s*=\s*)?((?:is_workflow_actions|com|dk)_\w+)\s*\(")
_BRANCH: Final = re.compile(r"\s*(?:if\s+.*:\s*$|elif\s+.*:\s*$|match\s+\w+\()")
_LOOP: Final = re.compile(r"\s*(?:for\s+\w.*\sin\s.*|while\s+.*):\s*$")


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """How many calls of tools, branches (also `elif`, `match`) and loops a program has."""

    calls: int
    branches: int
    loops: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: a request, the plan in words, and the program."""

    number: int
    query: str
    plan: str
    code: str
    apis: tuple[str, ...]


def load_samples() -> list[Sample]:
    """All samples, in order. Raises: `Skipped` without the data."""
    return [
        Sample(
            number, each["query"], each["task_plan"], each["annotated_code"], tuple(each["apis"])
        )
        for number, each in enumerate(load("programs/workflowbench/data_samples.json"))
    ]


def counted(code: str) -> ControlFlow:
    """The control flow of a program by regular expressions alone: the oracle of the importer."""
    lines = [line for line in code.split("\n") if not line.lstrip().startswith("#")]

    def number(pattern: re.Pattern[str]) -> int:
        return sum(pattern.match(line) is not None for line in lines)

    return ControlFlow(number(_CALL), number(_BRANCH), number(_LOOP))


def plan_steps(plan: str) -> Iterator[str]:
    """The numbered headings of a plan in words."""
    for found in re.finditer(r"^\s*\d+\.\s*\**(.+?)\**\s*:?\s*$", plan, re.MULTILINE):
        yield found[1].strip("* :")[:300]
