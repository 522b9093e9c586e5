"""The registry of agents: their classes and one-line summaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from weft.core.errors import BuildError
from weft.core.suggestion import unknown

AgentName = Literal["compiler", "divide", "react", "parallel-react", "plan"]


class AgentEntry(NamedTuple):
    """`place` is `module:class`; the module is imported on first use. `calls`: it calls tools."""

    place: str
    summary: str
    calls: bool = True


_LOOPS: Final = "weft.agents.loops"
AGENTS: Final[Mapping[str, AgentEntry]] = {
    "compiler": AgentEntry(
        f"{_LOOPS}.compiler:CompilerAgent",
        "a plan of calls that refer to one another (LLMCompiler)",
    ),
    "divide": AgentEntry(
        f"{_LOOPS}.divide:DivideAgent",
        "rounds of independent calls (Divide-Then-Aggregate)",
    ),
    "react": AgentEntry(f"{_LOOPS}.react:ReactAgent", "one call at a time (ReAct)"),
    "parallel-react": AgentEntry(
        f"{_LOOPS}.parallel_react:ParallelReactAgent", "the model's own parallel tool calls"
    ),
    "plan": AgentEntry(
        f"{_LOOPS}.plan_only:PlanAgent", "a plan as `compiler` writes it, and no call", calls=False
    ),
}


def check_callable(name: str, catalogue: str | Path) -> None:
    """Check that the agent `name` makes no calls, since no tool of `catalogue` has a function.

    Raises: `BuildError`.
    """
    if entry_of(name).calls:
        raise BuildError(
            f"no tool of {catalogue} has a function, so none can be called",
            hint="give functions of the same names as tools, or take the agent `plan`, which calls "
            "none",
        )


def entry_of(name: str) -> AgentEntry:
    """The agent called `name`. Raises: `BuildError`, with the known ones."""
    entry = AGENTS.get(name)
    if entry is None:
        raise unknown(BuildError, "agent", name, AGENTS)
    return entry
