"""That what a document says about an agent can be done. Asks no model."""

from __future__ import annotations

from weft.agents.loops import check_options
from weft.core.errors import BuildError
from weft.workflow.agent_options import options_of
from weft.workflow.document.leaves import ModelNode
from weft.workflow.source import Path
from weft.workflow.unit import Unit


def check_agent(unit: Unit, step: ModelNode, path: Path) -> None:
    """Check the agent of the node at `path`, if it has one. Raises: `BuildError`, at its place."""
    if step.agent is None:
        return
    try:
        check_options(step.agent.loop, options_of(step, step.agent))
    except BuildError as error:
        unit.fail(error, (*path, "agent"), at_key=True)
