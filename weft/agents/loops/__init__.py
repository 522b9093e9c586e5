"""Makes agents by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

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

    With `options.catalogue` it offers the tools that it chooses.

    Raises: `BuildError` for an unknown name; it lists the known ones.
    """
    entry = _entry(name)
    module, _, kind = entry.place.partition(":")
    made: Callable[[ToolRunner, ModelClient, AgentOptions], Agent]
    made = getattr(import_module(module), kind)
    if options.catalogue is None:
        return made(tools, model, options)
    from weft.agents.catalogue.agent import CatalogueAgent

    alone = replace(options, catalogue=None)
    return CatalogueAgent(
        name, tools, model, options, lambda chosen: made(chosen, model, alone), runs=entry.calls
    )


def check_options(name: str, options: AgentOptions) -> None:
    """Check that the agent exists, the answer's schema and the catalogue's file. Needs no model.

    Raises: `BuildError`.
    """
    entry = _entry(name)
    if options.schema is not None:
        if not entry.calls:
            hint = "leave the schema out, or take another agent"
            raise BuildError(f"the agent {name!r} answers with a plan, not by a schema", hint=hint)
        check_schema(options.schema)
    file = None if options.catalogue is None else options.catalogue.file
    if file is not None and not Path(file).is_file():
        hint = "give a JSON or JSON-lines file of declarations"
        raise BuildError(f"there is no catalogue {file}", hint=hint)


def check_callable(name: str, catalogue: str | Path) -> None:
    """Check that the agent `name` makes no calls, since no tool of `catalogue` has a function.

    Raises: `BuildError`.
    """
    if _entry(name).calls:
        raise BuildError(
            f"no tool of {catalogue} has a function, so none can be called",
            hint="give functions of the same names as tools, or take the agent `plan`, which calls "
            "none",
        )


def _entry(name: str) -> AgentEntry:
    entry = AGENTS.get(name)
    if entry is None:
        raise unknown(BuildError, "agent", name, AGENTS)
    return entry
