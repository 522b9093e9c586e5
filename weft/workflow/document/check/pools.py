"""Checks of where nodes run: the pools that maps and included workflows name, and tools in them."""

from __future__ import annotations

from weft.core.errors import BuildError, PlacementError, ToolError
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import walk_placed
from weft.workflow.document.spec.nodes import BaseNode, MapNode, ModelNode, ToolNode, WorkflowNode
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.tools.toolset import ToolLookup

_PASSED = BuildError, ToolError
"""Reported where the tool is used, or where its pool is named."""


def check_pools(unit: Unit, tools: ToolLookup, log: DefectLog) -> None:
    """Check the `on` of nodes, and place the tools inside of them; defects go to the log."""
    todo: list[tuple[Unit, str | None]] = [(unit, None)]
    seen = set(todo)
    for each, around in todo:
        for path, step, on in walk_placed(each.document.nodes, around):
            if isinstance(step, MapNode | WorkflowNode) and step.on is not None:
                with log:
                    _check_pool(each, tools, step.on, (*path, "on"), f"the {step.kind} {path[-1]}")
            if isinstance(step, WorkflowNode):
                included = each.includes[step.workflow], step.on or on
                if included not in seen:
                    seen.add(included)
                    todo.append(included)
            if on is not None and not log.found:
                with log:
                    _place(each, tools, step, path, on)


def _check_pool(unit: Unit, tools: ToolLookup, on: str, path: KeyPath, what: str) -> None:
    try:
        tools.check_pool(on, what)
    except BuildError as error:
        unit.fail(error, path)


def _place(unit: Unit, tools: ToolLookup, step: BaseNode, path: KeyPath, on: str) -> None:
    for text in _tools_of(step):
        try:
            tools.place(unit, text, on)
        except PlacementError as error:
            unit.fail(error, path)
        except _PASSED:
            continue


def _tools_of(step: BaseNode) -> list[str]:
    """The tools that a node calls."""
    if isinstance(step, ToolNode):
        return [choice.tool for choice in step.choices]
    return step.tools if isinstance(step, ModelNode) and step.agent is not None else []
