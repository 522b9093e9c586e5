"""Makes agents by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from weft.agents.agent import Agent, AgentOptions
from weft.agents.chat.model_output import check_schema
from weft.agents.names import AGENTS, AgentEntry
from weft.core.errors import BuildError
from weft.core.ports import ModelClient, ToolRunner
from weft.core.suggestion import unknown

_OPTIONS = AgentOptions()


def make_agent(
    name: str, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
) -> Agent:
    """The agent `name` over `tools` and `model`.

    Raises: `BuildError` for an unknown name; it lists the known ones.
    """
    module, _, kind = _entry(name).place.partition(":")
    made: Callable[[ToolRunner, ModelClient, AgentOptions], Agent]
    made = getattr(import_module(module), kind)
    return made(tools, model, options)


def check_options(name: str, options: AgentOptions) -> None:
    """Check that the agent exists, and that the answer's schema is valid. Needs no model.

    Raises: `BuildError`.
    """
    _entry(name)
    if options.schema is not None:
        check_schema(options.schema)


def _entry(name: str) -> AgentEntry:
    entry = AGENTS.get(name)
    if entry is None:
        raise unknown(BuildError, "agent", name, AGENTS)
    return entry
