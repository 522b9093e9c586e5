"""Whether a workflow written in Python can be written to a file."""

from __future__ import annotations

from weft.core.errors import BuildError
from weft.workflow.document.leaves import CallNode, ReduceNode, WorkflowNode
from weft.workflow.document.walk import walk
from weft.workflow.unit import ONLY_PYTHON, Unit, node_name


def check_portable(unit: Unit) -> None:
    """Raise `BuildError` for the first function or client that no file can name."""
    document = unit.document
    for name, tool in document.tools.items():
        _check(tool.use or "", f"the tool `{name}`", unit)
    for path, step in walk(document.nodes):
        if isinstance(step, CallNode):
            _check(step.call, f"the node `{node_name(path)}`", unit)
        elif isinstance(step, ReduceNode):
            _check(step.reduce, f"the node `{node_name(path)}`", unit)
        elif isinstance(step, WorkflowNode) and step.workflow.startswith(ONLY_PYTHON):
            hint = "write that one to a file first, and include the file"
            message = f"the node `{node_name(path)}` runs a workflow that exists only in Python"
            raise BuildError(message, hint=hint)
    for name in unit.clients:
        hint = "declare it: {use: openai, model: ..., base_url: ...}"
        raise BuildError(f"the model `{name}` is a client that exists only in Python", hint=hint)


def _check(reference: str, what: str, unit: Unit) -> None:
    if reference.startswith(ONLY_PYTHON):
        function = reference.removeprefix(ONLY_PYTHON)
        raise BuildError(
            f"{what} uses `{function}`, which no file can name",
            hint=f"move it to the top level of a file in {unit.folder}; a tool, and a function "
            "of an installed module, also needs @weft.tool",
        )
