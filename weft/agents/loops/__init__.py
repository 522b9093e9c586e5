"""Makes agents by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from weft.agents.agent import Agent, AgentOptions
from weft.agents.chat.model_output import check_schema
from weft.agents.loops.plan_rehearsal import check_rehearsal
from weft.agents.names import entry_of
from weft.core.errors import BuildError
from weft.core.ports import ModelClient, ToolRunner

_OPTIONS = AgentOptions()


def make_agent(
    name: str, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
) -> Agent:
    """The agent `name` over `tools` and `model`.

    With `options.catalogue` it offers the tools that it chooses.

    Raises: `BuildError` for an unknown name; it lists the known ones.
    """
    entry = entry_of(name)
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
    """Check that the agent exists and plans, if it is to rehearse; its schema and its catalogue.

    Needs no model.

    Raises: `BuildError`.
    """
    entry = entry_of(name)
    if options.rehearsal is not None:
        check_rehearsal(name)
    if options.schema is not None:
        if not entry.calls:
            hint = "leave the schema out, or take another agent"
            raise BuildError(f"the agent {name!r} answers with a plan, not by a schema", hint=hint)
        check_schema(options.schema)
    file = None if options.catalogue is None else options.catalogue.file
    if file is not None and not Path(file).is_file():
        hint = "give a JSON or JSON-lines file of declarations"
        raise BuildError(f"there is no catalogue {file}", hint=hint)
