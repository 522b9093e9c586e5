"""Breaks of loops: which nodes wait for which break, and where a break may stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.core.errors import BuildError
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import bodies, walk
from weft.workflow.document.spec.nodes import BaseNode, Block, BreakNode, LoopNode
from weft.workflow.document.unit import Unit

RESULT = "<result>"
"""Stands for the result of a body; impossible as a name in a document."""


def breaks_before(nodes: Mapping[str, BaseNode]) -> dict[str, str]:
    """For each node written after a break, and for `RESULT`: the last break before it.

    Nodes that only replace others are not among them: they run where their owner does.
    """
    if not any(isinstance(step, BreakNode) for step in nodes.values()):
        return {}
    replacements = {other for step in nodes.values() for other in (step.fallback, step.degrade)}
    before: dict[str, str] = {}
    last: str | None = None
    for name, step in nodes.items():
        if last is not None and name not in replacements:
            before[name] = last
        if isinstance(step, BreakNode):
            last = name
    if last is not None:
        before[RESULT] = last
    return before


def breaks_of(step: LoopNode) -> dict[str, BreakNode]:
    """The breaks of a loop, by name."""
    nodes = step.loop.nodes if isinstance(step.loop, Block) else {}
    return {name: inner for name, inner in nodes.items() if isinstance(inner, BreakNode)}


def check_breaks(unit: Unit, log: DefectLog) -> None:
    """Check that every break stands directly among the nodes of a loop; defects go to `log`."""
    allowed = set(_allowed(unit.document.nodes))
    for path, step in walk(unit.document.nodes):
        if not isinstance(step, BreakNode) or path in allowed:
            continue
        inside = "loop" in path
        hint = (
            "put it beside the node around it, and test that node's value there"
            if inside
            else "use `when` to leave nodes out"
        )
        if path[-1] == "loop":
            hint = "write `nodes:` with the break and other nodes, and a `result:`"
        with log:
            message = "a `break` stands directly among the `nodes` of a loop"
            unit.fail(BuildError(message, hint=hint), path)


def _allowed(nodes: Mapping[str, BaseNode]) -> Iterator[KeyPath]:
    """The paths of the breaks in place."""
    for path, step in walk(nodes):
        if isinstance(step, LoopNode):
            (body,) = bodies(step)
            yield from ((*path, *body.path, "nodes", name) for name in breaks_of(step))
