"""Workflows that have to run without a person. Runs nothing."""

from __future__ import annotations

from weft.core.errors import BuildError
from weft.workflow.document.leaves import AskNode
from weft.workflow.document.walk import walk
from weft.workflow.flow import Flow


def check_unattended(flow: Flow, served_as: str) -> None:
    """Raise `BuildError`, at its place, for a node that asks a person: `served_as` has nobody."""
    for unit in flow.unit.everything():
        for path, step in walk(unit.document.nodes):
            if isinstance(step, AskNode):
                message = (
                    f"the workflow {flow.name} asks a person, and {served_as} has nobody to ask"
                )
                unit.fail(BuildError(message, hint="make it an input"), path, at_key=True)
