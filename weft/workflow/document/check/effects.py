"""The nodes of a workflow that may make calls that must not be repeated.

Starts no server: while the tools of one are unknown, only the file's declarations count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import BaseNode, ModelNode, ToolNode, WorkflowNode
from weft.workflow.document.tool_servers import server_tool_name, source_of
from weft.workflow.document.unit import Unit, node_name
from weft.workflow.runtime.tools.toolset import Toolset


@dataclass(frozen=True, slots=True)
class OnceNode:
    """A node that calls, or as an agent may call, `tool`, whose effect is `once`."""

    node: str
    tool: str


def once_nodes(unit: Unit, tools: Toolset | None = None) -> tuple[OnceNode, ...]:
    """All such nodes in `unit` and the files it includes, in order.

    Raises: `ToolNotFound` or `BuildError` for tools that cannot be imported.
    """
    return tuple(_once_nodes(unit, tools or Toolset(), "", ()))


def _once_nodes(
    unit: Unit, tools: Toolset, inside: str, around: tuple[Unit, ...]
) -> Iterator[OnceNode]:
    for path, step in walk(unit.document.nodes):
        node = f"{inside}{node_name(path)}"
        if isinstance(step, WorkflowNode):
            part = unit.includes.get(step.workflow)
            if part is not None and part not in around:
                yield from _once_nodes(part, tools, f"{node}/", (*around, unit))
        for text in _called(step):
            if _is_once(unit, tools, text):
                yield OnceNode(node, text)


def _called(step: BaseNode) -> list[str]:
    match step:
        case ToolNode():
            return list(dict.fromkeys([step.tool, *(each.tool for each in step.alternatives)]))
        case ModelNode():
            return step.tools
        case _:
            return []


def _is_once(unit: Unit, tools: Toolset, text: str) -> bool:
    source = source_of(unit, text)
    if source is None or tools.replaces(source[0]):
        return tools.spec(unit, text).effect == "once"
    name, tool = source
    known = {spec.name: spec.effect for spec in tools.known(unit, name)}
    declared = unit.document.tools[name].effects
    if not tool:
        return "once" in known.values() or "once" in declared.values()
    return known.get(server_tool_name(name, tool), declared.get(tool, declared.get(""))) == "once"
