"""What the tools of a workflow's nodes do, and which calls must not be repeated.

Starts no server: while the tools of one are unknown, only the file's declarations count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.core.values import Effect
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


@dataclass(frozen=True, slots=True)
class ToolEffects:
    """A node that calls, or as an agent may call, `tool`, and what its calls may do."""

    node: str
    tool: str
    effects: frozenset[Effect]


def once_nodes(unit: Unit, tools: Toolset | None = None) -> tuple[OnceNode, ...]:
    """All such nodes in `unit` and the files it includes, in order. Raises: as `tool_effects`."""
    found = tool_effects(unit, tools)
    return tuple(OnceNode(each.node, each.tool) for each in found if "once" in each.effects)


def tool_effects(unit: Unit, tools: Toolset | None = None) -> tuple[ToolEffects, ...]:
    """The effects of the tools of all nodes in `unit` and the files it includes, in order.

    Raises: `ToolNotFound` or `BuildError` for tools that cannot be imported.
    """
    return tuple(_tool_effects(unit, tools or Toolset(), "", ()))


def _tool_effects(
    unit: Unit, tools: Toolset, inside: str, around: tuple[Unit, ...]
) -> Iterator[ToolEffects]:
    for path, step in walk(unit.document.nodes):
        node = f"{inside}{node_name(path)}"
        if isinstance(step, WorkflowNode):
            part = unit.includes.get(step.workflow)
            if part is not None and part not in around:
                yield from _tool_effects(part, tools, f"{node}/", (*around, unit))
        for text in _called(step):
            yield ToolEffects(node, text, _effects(unit, tools, text))


def _called(step: BaseNode) -> list[str]:
    match step:
        case ToolNode():
            return list(dict.fromkeys([step.tool, *(each.tool for each in step.alternatives)]))
        case ModelNode():
            return step.tools
        case _:
            return []


def _effects(unit: Unit, tools: Toolset, text: str) -> frozenset[Effect]:
    source = source_of(unit, text)
    if source is None or tools.replaces(source[0]):
        return frozenset((tools.spec(unit, text).effect,))
    name, tool = source
    known = {spec.name: spec.effect for spec in tools.known(unit, name)}
    declared = unit.document.tools[name].effects
    if not tool:
        return frozenset((*known.values(), *declared.values())) or frozenset(("unknown",))
    otherwise = declared.get(tool, declared.get("", "unknown"))
    return frozenset((known.get(server_tool_name(name, tool), otherwise),))
