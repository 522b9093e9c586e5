"""How a search over Countdown states is written down: the lines of SoS+ and APR (arXiv 2504.15466).

Knows the wording only; what is explored, and in which order, is the search's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evals.reasoning.countdown.problem import Numbers, Problem

CALLING: Final = "<Calling Sub Searches>"
CALLING_END: Final = "<End Calling Sub Searches>"
RESULTS: Final = "<Sub Searches>"
RESULTS_END: Final = "<End Sub Searches>"
GOAL: Final = "equal: Goal Reached"
NOTHING: Final = "No solution found."
MOVING: Final = "Moving to Node #"

_STATE = re.compile(
    r"Moving to Node #(?P<id>\d+(?:,\d+)*)\n"
    r"Current State: (?P<target>\d+):\[(?P<numbers>\d+(?:, \d+)*)\], "
    r"Operations: \[(?P<steps>[^\]\n]*)\]\n"
)
_QUOTED = re.compile(r"'([^']+)'")
_OPERATIONS = re.compile(r"^Current State: .*, Operations: \[(.*)\]$")
_EXPLORED = re.compile(r"Exploring Operation: (\S+), Resulting")


@dataclass(frozen=True, slots=True)
class Node:
    """A state of the search: where it is in the tree, what is left, and how it was reached."""

    id: str
    target: int
    numbers: Numbers
    steps: tuple[str, ...] = ()

    @classmethod
    def root(cls, problem: Problem) -> Node:
        return cls("0", problem.target, problem.numbers)

    def child(self, index: int, numbers: Numbers, step: str) -> Node:
        return Node(f"{self.id},{index}", self.target, numbers, (*self.steps, step))

    @property
    def opening(self) -> str:
        """The two lines with which a search at this node starts: a root's and a child's prompt."""
        steps = ", ".join(f"'{step}'" for step in self.steps)
        state = f"{self.target}:{listed(self.numbers)}"
        return f"{MOVING}{self.id}\nCurrent State: {state}, Operations: [{steps}]\n"

    @property
    def generated(self) -> str:
        state = f"{self.target}:{listed(self.numbers)}"
        return f"Generated Node #{self.id}: {state} Operation: {self.steps[-1]}\n"


def listed(numbers: Numbers) -> str:
    """A list of numbers as traces have it."""
    return f"[{', '.join(map(str, numbers))}]"


def opening_node(prompt: str) -> Node:
    """The node that a prompt opens with, behind its condition. Raises: ValueError without one."""
    found = _STATE.search(prompt)
    if found is None:
        raise ValueError(f"no search starts in {prompt[:80]!r}")
    numbers = tuple(map(int, found["numbers"].split(", ")))
    return Node(found["id"], int(found["target"]), numbers, tuple(_QUOTED.findall(found["steps"])))


def exploring(step: str, numbers: Numbers) -> str:
    """The line of a step that is tried, and of what it leaves."""
    return f"Exploring Operation: {step}, Resulting Numbers: {listed(numbers)}\n"


def leaf(value: int, target: int) -> str:
    """The line about a single number that is left: the target, or not."""
    return (
        f"{value},{target} {GOAL}\n"
        if value == target
        else f"{value},{target} unequal: No Solution\n"
    )


def path(problem_numbers: Numbers, target: int, steps: Sequence[str]) -> str:
    """The way to the goal again, without the search around it: what a join hands on."""
    lines, left = [], list(problem_numbers)
    for step in steps:
        a, b, result = (int(n) for n in re.findall(r"\d+", step))
        left.remove(a)
        left.remove(b)
        left.append(result)
        lines.append(exploring(step, tuple(left)))
    return "".join(lines) + leaf(target, target)


def message(text: str) -> str | None:
    """What a finished search returns: the text behind its last but one goal; None without two."""
    parts = text.split(f"{GOAL}\n")
    return f"{parts[-2]}{GOAL}\n" if len(parts) >= 3 else None


def steps_in(found: str) -> list[str]:
    """The steps that a message (see `message`) takes, in order."""
    return _EXPLORED.findall(found)


def final_steps(text: str) -> list[str] | None:
    """The steps of the path that a finished root search ends with; None when it found none."""
    found = message(text)
    return None if found is None else steps_in(found)


def reached(text: str) -> list[tuple[str, ...]]:
    """The steps to every goal that a trace comes upon, whether or not its end repeats them."""
    found, before, step = [], (), ""
    for line in text.splitlines():
        if state := _OPERATIONS.search(line):
            before = tuple(_QUOTED.findall(state[1]))
        elif explored := _EXPLORED.match(line):
            step = explored[1]
        elif line.endswith(GOAL):
            found.append((*before, step))
    return found
