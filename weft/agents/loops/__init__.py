"""The agents, by name. Each is imported when it is first asked for.

compiler         plan, run while the plan is still being written, join, finish or plan again
divide           rounds of independent calls: divide, aggregate, decide
react            one call after the other, each decided by what came before
parallel-react   the model's own parallel tool calls
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from weft.agents.agent import Agent, AgentOptions
from weft.agents.chat.model_output import check_schema
from weft.core.errors import BuildError
from weft.core.ports import ModelClient, ToolRunner
from weft.core.suggestion import unknown

AGENTS: Final[Mapping[str, str]] = {
    "compiler": "weft.agents.loops.compiler:CompilerAgent",
    "divide": "weft.agents.loops.divide:DivideAgent",
    "react": "weft.agents.loops.react:ReactAgent",
    "parallel-react": "weft.agents.loops.parallel_react:ParallelReactAgent",
}
"""Where each agent's class is."""

_OPTIONS = AgentOptions()


def make_agent(
    name: str, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
) -> Agent:
    """The agent called `name`, over `tools` and `model`.

    Raises: `BuildError`, which lists the agents, when there is none of that name.
    """
    module, _, kind = _place(name).partition(":")
    made: Callable[[ToolRunner, ModelClient, AgentOptions], Agent]
    made = getattr(import_module(module), kind)
    return made(tools, model, options)


def check_options(name: str, options: AgentOptions) -> None:
    """Check that there is such an agent, and a schema that an answer can fit. Needs no model.

    Raises: `BuildError`.
    """
    _place(name)
    if options.schema is not None:
        check_schema(options.schema)


def _place(name: str) -> str:
    place = AGENTS.get(name)
    if place is None:
        raise unknown(BuildError, "agent", name, AGENTS)
    return place
