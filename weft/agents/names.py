"""The registry of agents: their classes and one-line summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

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
